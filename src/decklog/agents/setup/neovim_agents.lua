-- Written by `decklog setup neovim`; `decklog setup neovim --remove` takes it out.
-- CodeCompanion:  adapters = { acp = require("decklog_agents").codecompanion() }
-- avante:         acp_providers = require("decklog_agents").avante
local commands = @COMMANDS@

local agents = { avante = {} }
for name, words in pairs(commands) do
  agents.avante[name] = { command = words[1], args = vim.list_slice(words, 2), env = {} }
end

function agents.codecompanion()
  local like = { claude = "claude_code", codex = "codex", gemini = "gemini_cli", opencode = "opencode" }
  local adapters = {}
  for name, words in pairs(commands) do
    adapters["decklog_" .. name] = function()
      return require("codecompanion.adapters").extend(like[name], { commands = { default = words } })
    end
  end
  return adapters
end

return agents

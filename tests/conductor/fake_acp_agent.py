"""An agent without a model that speaks the Agent Client Protocol: it follows the script in its prompt, as the plain one does.

Besides what that one does it says things, asks leave, tells its cost, and ends a turn in any way. Run as a program of its own.
"""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fake_agent

SESSION = "s-" + str(os.getpid())


def send(message: dict) -> None:  # type: ignore[type-arg]
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(what: str, **told: object) -> None:
    send({"method": "session/update", "params": {"sessionId": SESSION, "update": {"sessionUpdate": what, **told}}})


class Turn:
    """One prompt, worked through."""

    def __init__(self) -> None:
        self.result: dict = {"stopReason": "end_turn"}  # type: ignore[type-arg]
        self.error: dict | None = None  # type: ignore[type-arg]
        self.calls = 0

    def follow(self, step: list) -> None:  # type: ignore[type-arg]
        verb, *given = step
        match verb:
            case "say":
                update("agent_message_chunk", content={"type": "text", "text": given[0]})
            case "shell":
                self.shell(given[0])
            case "cost":
                update("usage_update", used=1, size=2, cost={"amount": given[0], "currency": "USD"})
            case "tokens":
                self.result["usage"] = {"inputTokens": given[0], "outputTokens": given[1]} if given else None
            case "stop":
                self.result["stopReason"] = given[0]
            case "error":
                self.error = {"code": given[0], "message": given[1]}
            case "until-cancelled":
                while json.loads(sys.stdin.readline()).get("method") != "session/cancel":
                    continue
                self.result["stopReason"] = "cancelled"
            case _:
                fake_agent.follow(step)

    def shell(self, command: str) -> None:
        """Run a command if that is allowed."""
        self.calls += 1
        call = {"toolCallId": f"call-{self.calls}", "title": command, "kind": "execute", "rawInput": {"command": command}}
        update("tool_call", status="pending", **call)
        options = [
            {"optionId": f"o-{kind}", "kind": kind, "name": kind} for kind in ("allow_always", "allow_once", "reject_once")
        ]
        request = {"sessionId": SESSION, "toolCall": {"toolCallId": call["toolCallId"]}, "options": options}
        send({"id": self.calls, "method": "session/request_permission", "params": request})
        answer = json.loads(sys.stdin.readline())
        while answer.get("id") != self.calls:
            answer = json.loads(sys.stdin.readline())
        if answer["result"]["outcome"].get("optionId") == "o-allow_once":
            subprocess.run(command, shell=True, check=False, stdout=subprocess.DEVNULL)
            update("tool_call_update", toolCallId=call["toolCallId"], status="completed", rawOutput="done")
        else:
            update("tool_call_update", toolCallId=call["toolCallId"], status="failed", rawOutput="not allowed")


def prompted(text: str, name: str) -> dict:  # type: ignore[type-arg]
    turn = Turn()
    told = text.splitlines()
    scripts = dict(line.split(" ", 1) for line in told if line.startswith("SCRIPT"))
    number = next((line.removeprefix("Round ") for line in told if line.startswith("Round ")), "1")
    for step in json.loads(scripts.get(f"SCRIPT-{number}") or scripts[name]):
        turn.follow(step)
    return {"error": turn.error} if turn.error else {"result": turn.result}


def main() -> None:
    # Everything in the place gets the signal; who wants it to stop says so on the wire as well.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while line := sys.stdin.readline():
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                info = {"name": "scripted", "version": "7"}
                send({"id": message["id"], "result": {"protocolVersion": 1, "agentInfo": info, "agentCapabilities": {}}})
            case "session/new":
                assert os.path.isabs(message["params"]["cwd"])
                assert message["params"]["mcpServers"] == []
                send({"id": message["id"], "result": {"sessionId": SESSION, "models": {"currentModelId": "small"}}})
            case "session/set_model":
                update("agent_message_chunk", content={"type": "text", "text": f"model {message['params']['modelId']}"})
                send({"id": message["id"], "result": {}})
            case "session/prompt":
                send({"id": message["id"], **prompted(message["params"]["prompt"][0]["text"], "SCRIPT")})


if __name__ == "__main__":
    main()

"use strict";

/* Scroll the menu to the current page. */
const menu = document.querySelector("nav");
const current = menu.querySelector("[aria-current]");
if (current) menu.scrollTop = current.offsetTop - menu.clientHeight / 2;

/* Copy a block; of a console block only the commands. */
function copiedText(block) {
  const lines = block.textContent.trimEnd().split("\n");
  const commands = lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
  return (commands.length ? commands : lines).join("\n");
}

for (const block of document.querySelectorAll("article pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(copiedText(block));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  const frame = document.createElement("div");
  frame.className = "code";
  block.replaceWith(frame);
  frame.append(block, button);
}

/* Search: every word must occur; a word in the title counts more. */
const query = document.getElementById("search");
const results = document.getElementById("results");

function score(entry, words) {
  const title = entry.title.toLowerCase();
  const text = entry.text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const inTitle = title.includes(word);
    if (!inTitle && !text.includes(word)) return 0;
    sum += inTitle ? 10 : 1;
  }
  return sum;
}

function excerpt(entry, word) {
  const at = Math.max(0, entry.text.toLowerCase().indexOf(word) - 60);
  return entry.text.slice(at, at + 180);
}

function resultItem(entry, words) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = `${baseUrl}/${entry.location}`;
  link.textContent = entry.title;
  const text = document.createElement("p");
  text.textContent = excerpt(entry, words[0]);
  item.append(link, text);
  return item;
}

query.addEventListener("input", () => {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  results.hidden = !words.length;
  if (!words.length) return;
  const found = searchIndex.docs
    .map((entry) => [score(entry, words), entry])
    .filter(([points]) => points > 0)
    .sort(([one], [other]) => other - one)
    .slice(0, 20);
  const list = document.createElement("ul");
  list.append(...found.map(([, entry]) => resultItem(entry, words)));
  results.replaceChildren(found.length ? list : "Nothing found");
});

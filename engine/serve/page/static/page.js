// Copies commands, runs actions after a confirmation, and keeps what a reader does when the page is refreshed.
"use strict";

const base = document.body.dataset.base;
const notice = document.getElementById("notice");
const dialog = document.getElementById("answer");
const title = document.getElementById("answer-title");
const text = document.getElementById("answer-text");
const doIt = document.getElementById("answer-do");

// A refresh keeps the elements that it does not change: their focus, what is typed, what is open and selected.
Object.assign(Idiomorph.defaults.callbacks, {
  beforeNodeMorphed: (node) => !(node instanceof HTMLInputElement),
  beforeAttributeUpdated: (name) => name !== "open",
});
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden) event.preventDefault();
});
document.addEventListener("htmx:afterRequest", (event) => {
  const { successful, xhr } = event.detail;
  if (!successful) notice.textContent = `Not updated: ${xhr.status ? `status ${xhr.status}` : "no answer"}.`;
  else if (notice.textContent.startsWith("Not updated")) notice.textContent = "";
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.copy) copy(button.dataset.copy, button);
  if (button?.dataset.action) run(button.dataset.action, button.dataset.table, true);
});

async function copy(command, button) {
  try {
    await navigator.clipboard.writeText(command);
    notice.textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(button.previousElementSibling);
    notice.textContent = "The command is selected.";
  }
  setTimeout(() => { notice.textContent = ""; }, 2000);
}

async function run(action, table, isDry) {
  show(`${capital(action)}: ${isDry ? "reading what it would do" : "in progress"} …`);
  if (!dialog.open) dialog.showModal();
  const headers = { "Content-Type": "application/json" };
  const csrf = document.querySelector('meta[name="csrf-token"]');
  if (csrf) headers["X-CSRF-Token"] = csrf.content;
  if (!isDry) headers["Idempotency-Key"] = crypto.randomUUID();
  try {
    const url = `${base}/v1/tables/${encodeURIComponent(table)}/actions/${encodeURIComponent(action)}`;
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify({ dry_run: isDry }) });
    const answer = await response.json();
    if (response.ok) {
      show(isDry ? `${capital(action)}: what it would do` : `${capital(action)}: done`, fields(answer));
      doIt.hidden = !isDry;
      doIt.onclick = () => run(action, table, false);
    } else {
      show(answer.title ?? `Status ${response.status}`, paragraph(answer.detail ?? ""));
    }
  } catch (error) {
    show("No answer", paragraph(`It is not known whether the service has done it: ${error.message}`));
  }
  if (!isDry) htmx.trigger("#main", "refresh");
}

function show(heading, ...content) {
  title.textContent = heading;
  text.replaceChildren(...content);
  doIt.hidden = true;
}

function paragraph(words) {
  return Object.assign(document.createElement("p"), { textContent: words });
}

function fields(found) {
  const list = Object.assign(document.createElement("dl"), { className: "facts" });
  for (const [name, value] of Object.entries(found)) {
    const term = Object.assign(document.createElement("dt"), { textContent: name.replaceAll("_", " ") });
    const description = document.createElement("dd");
    description.append(...[shown(value, name)].flat());
    list.append(term, description);
  }
  return list;
}

function shown(value, name) {
  if (Array.isArray(value)) return value.length ? value.map((each) => item(shown(each, name))) : "none";
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return /(^|_)bytes/.test(name) ? size(value) : value.toLocaleString("en");
  return typeof value === "object" ? fields(value) : value;
}

function item(content) {
  const box = document.createElement("div");
  box.append(...[content].flat());
  return box;
}

function size(bytes) {
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 4);
  return power ? `${(bytes / 1024 ** power).toFixed(1)} ${["KiB", "MiB", "GiB", "TiB"][power - 1]}` : `${bytes} B`;
}

function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}

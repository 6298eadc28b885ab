"use strict";
// The parts of a page that move: search, sorting, folding, keys and the choice of light or dark.
// Everything that is to be read is in the page.

// Before the page is drawn. Storage may be closed to pages from files.
const theme = {
  get() { try { return localStorage.getItem("rocov-theme"); } catch { return null; } },
  set(name) {
    document.documentElement.dataset.theme = name;
    try { localStorage.setItem("rocov-theme", name); } catch { /* It holds for this page. */ }
  },
  toggle() {
    const now = document.documentElement.dataset.theme ??
      (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    theme.set(now === "dark" ? "light" : "dark");
  },
};
if (theme.get()) document.documentElement.dataset.theme = theme.get();

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const make = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

document.addEventListener("DOMContentLoaded", () => {
  find("#theme").addEventListener("click", theme.toggle);
  find("#help").addEventListener("click", () => find("#keys").showModal());
  for (const part of all(".top [hidden]:not(#found), .stops")) part.hidden = false;
  choose(location.hash);
  addEventListener("hashchange", () => choose(location.hash));
  search();
  if (find(".files")) { sort(find(".files")); fold(find(".files")); }
  if (find(".stops")) stops.start();
  document.addEventListener("keydown", keys);
});

// A link such as #only-1 chooses what is shown.
function choose(hash) {
  const choice = /^#only-\w+$/.test(hash) && find(hash);
  if (choice) choice.click();
}

function keys(event) {
  const typing = event.target.matches("input[type=search]");
  if (event.ctrlKey || event.metaKey || event.altKey || typing || find("dialog[open]")) return;
  const follow = (selector) => () => find(selector)?.click();
  const action = {
    "/": () => find("#search").focus(),
    "n": () => stops.go(1),
    "p": () => stops.go(-1),
    "]": follow("a[rel=next]"),
    "[": follow("a[rel=prev]"),
    "u": follow(".brand"),
    "t": theme.toggle,
    "?": follow("#help"),
  }[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
}

// The parts of a source that did not run, of those that are shown.
const stops = {
  at: -1,
  list: [],
  start() {
    find("#next").addEventListener("click", () => stops.go(1));
    find("#previous").addEventListener("click", () => stops.go(-1));
    for (const input of all(".controls input")) input.addEventListener("change", stops.collect);
    stops.collect();
  },
  // The first of the lines that follow one another in the same state.
  collect() {
    const only = find("[name=only]:checked").id.slice("only-".length);
    const column = /^\d+$/.test(only) ? only : "";
    const state = (row) => ["x", "p"].find((it) => row.classList.contains(it + column));
    const lines = all(".source tr[id]");
    stops.list = lines.filter((row, index) =>
      row.checkVisibility() && state(row) && (index === 0 || state(lines[index - 1]) !== state(row)));
    stops.at = -1;
    find("tr.stop")?.classList.remove("stop");
    stops.say();
  },
  go(step) {
    const count = stops.list.length;
    if (!count) return;
    stops.list[stops.at]?.classList.remove("stop");
    stops.at = stops.at < 0 ? (step > 0 ? 0 : count - 1) : (stops.at + step + count) % count;
    const row = stops.list[stops.at];
    row.classList.add("stop");
    find("th a", row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "center" });
    stops.say();
  },
  say() {
    const count = stops.list.length;
    const text = !count ? "nothing missed" : stops.at < 0 ? `${count} missed` : `${stops.at + 1} of ${count}`;
    find(".stops output").value = text;
  },
};

// Search. The index is a script, as a page from a file may load nothing else.
let index;
function rocovSearchIndex({ files, functions }) {
  const entry = (name, where, page) => ({ name, where, page, text: `${name} ${where}`.toLowerCase() });
  index = [
    ...files.map(([name, page]) => entry(name, "", page)),
    ...functions.map(([name, file, line]) =>
      entry(name, `${files[file][0]}:${line}`, `${files[file][1]}#L${line}`)),
  ];
  find("#search").dispatchEvent(new Event("input"));
}

function search() {
  const [input, found] = [find("#search"), find("#found")];
  const root = document.body.dataset.root;
  const most = 40;
  const load = () => {
    if (find("#search-index")) return;
    const script = Object.assign(document.createElement("script"), {
      id: "search-index",
      src: `${root}assets/search.js`,
    });
    document.head.append(script);
  };
  input.addEventListener("focus", load);
  input.addEventListener("input", () => {
    load();
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = !words.length || !index;
    if (found.hidden) return;
    const hits = index.filter(({ text }) => words.every((word) => text.includes(word)));
    const said = hits.length > most ? `${hits.length} found, the first ${most}:` : `${hits.length} found`;
    find("p", found).textContent = said;
    find("ul", found).replaceChildren(...hits.slice(0, most).map((hit) => {
      const link = Object.assign(make("a", hit.name), { href: root + hit.page });
      if (hit.where) link.append(make("small", hit.where));
      const item = document.createElement("li");
      item.append(link);
      return item;
    }));
  });
  find(".top search").addEventListener("keydown", (event) => {
    const links = all("a", found);
    const at = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      found.hidden = true;
      document.activeElement.blur();
    } else if (event.key === "Enter" && event.target === input) {
      links[0]?.click();
    } else if (event.key === "ArrowDown" && !found.hidden) {
      links[Math.min(at + 1, links.length - 1)]?.focus();
    } else if (event.key === "ArrowUp" && !found.hidden) {
      (links[at - 1] ?? input).focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("search")) found.hidden = true;
  });
}

// Files by name or percentage, worst or first first; a third time, the tree again.
function sort(table) {
  const body = find("tbody", table);
  const tree = [...body.rows];
  const heads = all("thead th", table);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    const key = (row) => head.dataset.sort === "name"
      ? row.cells[0].textContent
      : Number(row.cells[column].dataset.percent ?? 101);
    button.addEventListener("click", () => {
      const order = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
      for (const other of heads) other.removeAttribute("aria-sort");
      table.classList.toggle("flat", order !== null);
      if (order === null) {
        body.append(...tree);
        return;
      }
      head.setAttribute("aria-sort", order ?? "ascending");
      const sign = order ? -1 : 1;
      const keyed = tree.map((row) => [key(row), row]);
      keyed.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
      body.append(...keyed.map(([, row]) => row));
    });
  });
}

// Directories can be folded.
function fold(table) {
  for (const name of all(".fold", table)) {
    name.role = "button";
    name.tabIndex = 0;
    name.ariaExpanded = "true";
    const toggle = () => {
      name.ariaExpanded = name.ariaExpanded === "true" ? "false" : "true";
      refold(table);
    };
    name.addEventListener("click", toggle);
    name.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        toggle();
      }
    });
  }
}

function refold(table) {
  let closed = Infinity;
  for (const row of find("tbody", table).rows) {
    const depth = Number(row.dataset.depth);
    row.classList.toggle("folded", depth > closed);
    if (depth <= closed) {
      closed = find(".fold", row)?.ariaExpanded === "false" ? depth : Infinity;
    }
  }
}

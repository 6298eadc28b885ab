"use strict";
// The parts of a page that move: search, sorting, the memory of choices, keys and the choice of light or dark.
// Everything that is to be read is in the page.

// Before the page is drawn. Storage may be closed to pages from files.
const storage = {
  get(name) { try { return localStorage.getItem(`rocov-${name}`); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(`rocov-${name}`, value); } catch { /* It holds for this page. */ } },
};
const theme = {
  get() { return storage.get("theme"); },
  set(name) {
    document.documentElement.dataset.theme = name;
    storage.set("theme", name);
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

document.addEventListener("DOMContentLoaded", async () => {
  find("#theme").addEventListener("click", theme.toggle);
  find("#help").addEventListener("click", () => find("#keys").showModal());
  for (const part of all(".top [hidden]:not(#found)")) part.hidden = false;
  search();
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", arrive);
  if (single.start()) await arrive();
  else begin();
});

// What a page has beside the bar at its top.
function begin() {
  for (const part of all(".stops, .scripted")) part.hidden = false;
  for (const table of all("table:has(th[data-sort])")) {
    const sorted = sort(table);
    if (table.matches(".files")) { folds(table); order(table, sorted); }
  }
  choose(anchor());
  for (const input of choices()) input.addEventListener("change", keepChoices);
  if (find(".reached")) linkLines(find(".reached"));
  nameTests();
  if (find(".stops")) stops.start();
}

// After the address has changed.
async function arrive() {
  if (!await single.arrive()) choose(anchor());
  nameTests();
}

// The part of the address that is in a page: of a single file, the address of a page is before it.
const anchor = () => single.page ? single.parts()[1] : location.hash;
const address = (anchor) => single.page ? `#/${single.page}#${anchor}` : `#${anchor}`;

// A report in a single file has its pages in scripts, compressed.
const single = {
  page: "",
  start() {
    if (!find("script[data-page]")) return false;
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href]");
      if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey) return;
      const [name, place = ""] = link.getAttribute("href").replace(/^(\.\.\/)+/, "").split("#");
      if (name && !single.script(name)) return;
      event.preventDefault();
      location.hash = `#/${name || single.page}#${place}`;
    });
    return true;
  },
  script(name) { return find(`script[data-page="${CSS.escape(name)}"]`); },
  // The page that the address names, and the place in it.
  parts() {
    const [, name = "index.html", place = ""] = /^#\/([^#]*)#?(.*)$/.exec(location.hash) ?? [];
    return [single.script(name) ? name : "index.html", `#${place}`];
  },
  async text(name) {
    const bytes = Uint8Array.from(atob(single.script(name).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).text();
  },
  // Shows the page of the address. Returns whether there is one that was not shown before.
  async arrive() {
    if (!find("script[data-page]")) return false;
    const [name, place] = single.parts();
    const isNew = name !== single.page;
    if (isNew) {
      // The first page is there from the start.
      const isThere = name === "index.html" && !single.page;
      const page = isThere ? null : new DOMParser().parseFromString(await single.text(name), "text/html");
      single.page = name;
      if (page) {
        document.title = page.title;
        document.body.dataset.root = page.body.dataset.root;
        for (const part of ["#of-page", ".top nav", "main", "footer"]) find(part).replaceWith(find(part, page));
        scrollTo({ top: 0, behavior: "instant" });
      }
      begin();
    }
    for (const old of all(".target")) old.classList.remove("target");
    const target = place.length > 1 && document.getElementById(place.slice(1));
    if (target) {
      target.classList.add("target");
      target.scrollIntoView();
    }
    return isNew;
  },
};

// The address has the choices of what is shown: #only-1, or #whole&metric-branches.
const choices = () => all(".controls input");

function choose(hash) {
  const ids = hash.slice(1).split("&");
  for (const input of choices()) if (ids.includes(input.id) && !input.checked) input.click();
}

function keepChoices() {
  const chosen = choices().filter((input) => input.checked && !input.defaultChecked);
  history.replaceState(null, "", address(chosen.map((input) => input.id).join("&")));
}

function keys(event) {
  const typing = event.target.matches("input[type=search]");
  if (event.ctrlKey || event.metaKey || event.altKey || typing || find("dialog[open]")) return;
  const follow = (selector) => () => find(selector)?.click();
  const action = {
    "/": () => find("#search").focus(),
    "n": () => walk(1),
    "p": () => walk(-1),
    "j": () => walk(1),
    "k": () => walk(-1),
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

// To the next part of a source that did not run, or to the next row of a table.
function walk(step) {
  if (find(".stops")) {
    stops.go(step);
    return;
  }
  const links = all(".rows > tr > th a, .rows > tr > th input").filter((link) => link.closest("tr").checkVisibility());
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : (at + step + links.length) % links.length];
  next?.focus();
  next?.closest("tr").scrollIntoView({ block: "nearest" });
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
  const most = 40;
  const load = () => loadScript("index", "assets/search.js");
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
      const link = Object.assign(make("a", hit.name), { href: document.body.dataset.root + hit.page });
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

// The rows of each body of a table, sorted by a column: texts by name, shares and counts by number. A third click
// on the head of the column brings the first order back.
function sort(table) {
  const bodies = [...table.tBodies].map((body) => ({ body, rows: [...body.rows] }));
  const heads = all("thead th[data-sort]", table);
  const isFiles = table.matches(".files");
  const order = (head, direction, keyOf = (row) => sortKey(row.cells[head.cellIndex])) => {
    for (const other of heads) other.removeAttribute("aria-sort");
    if (isFiles) table.classList.toggle("flat", direction !== null);
    if (direction) head.setAttribute("aria-sort", direction);
    const sign = direction === "descending" ? -1 : 1;
    for (const { body, rows } of bodies) {
      const keyed = direction ? rows.map((row) => [keyOf(row), row]) : [];
      keyed.sort(([a], [b]) => sign * compare(a, b));
      body.append(...(direction ? keyed.map(([, row]) => row) : rows));
    }
  };
  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: null };
      const now = head.getAttribute("aria-sort");
      order(head, now ? next[now] : "ascending");
      if (isFiles) find("#order-tree").checked = !table.matches(".flat");
    });
  }
  return order;
}

// The value of a cell that it is sorted by, and one for cells that are equal by the first: of a share, how much is
// covered and how much is not. A cell without a number comes last.
function sortKey(cell) {
  if (!cell) return [Infinity, 0];
  if (cell.tagName === "TH") return [cell.textContent.trim(), 0];
  const [, covered, total] = /^[\d.]+% \(?(\d+)\/(\d+)\)?(?: |$)/.exec(cell.textContent.trim()) ?? [];
  if (total !== undefined) return [covered / total, covered - total];
  const exact = find("data", cell)?.value ?? cell.textContent.trim();
  if (exact === "" || exact === "–" || exact === "-") return [Infinity, 0];
  return [Number.isNaN(Number(exact)) ? exact : Number(exact), 0];
}

function compare(a, b) {
  const index = a.findIndex((value, at) => value !== b[at]);
  if (index < 0) return 0;
  const [one, other] = [a[index], b[index]];
  if (typeof one === "string" && typeof other === "string") return one.localeCompare(other, undefined, { numeric: true });
  return typeof one === "string" ? 1 : typeof other === "string" ? -1 : one - other;
}

// The order of files: the tree, or worst first by the chosen figures of all columns, then by the worst column. The
// choice holds for other reports.
function order(table, sorted) {
  const [tree, worst] = [find("#order-tree"), find("#order-worst")];
  const apply = () => {
    const heads = all("thead th.m", table).filter((head) => head.checkVisibility());
    const columns = heads.map((head) => head.cellIndex);
    const keyOf = (row) => {
      const keys = columns.map((column) => sortKey(row.cells[column]));
      return [keys.at(-1)[0], Math.min(...keys.map(([share]) => share)), keys.at(-1)[1]];
    };
    if (worst.checked) sorted(heads.at(-1), "ascending", keyOf);
    else sorted(null, null);
  };
  for (const choice of [tree, worst]) {
    choice.addEventListener("change", () => {
      storage.set("order", worst.checked ? "worst" : "tree");
      apply();
    });
  }
  for (const metric of all("[name=metric]")) {
    metric.addEventListener("change", () => { if (worst.checked) apply(); });
  }
  worst.checked = storage.get("order") === "worst";
  tree.checked = !worst.checked;
  if (worst.checked) apply();
}

// Directories: the page opens and closes them by itself. This remembers which, for reports of the same sources.
function folds(table) {
  const boxes = all(".fold input", table);
  const button = find("#folds");
  if (!button) return;
  const name = `open ${table.dataset.base}`;
  const known = JSON.parse(storage.get(name) ?? "{}");
  const update = () => { button.textContent = boxes.every((box) => box.checked) ? "Close all" : "Open all"; };
  const remember = () => {
    const changed = boxes.filter((box) => box.checked !== box.defaultChecked);
    storage.set(name, JSON.stringify(Object.fromEntries(changed.map((box) => [box.dataset.path, box.checked]))));
    update();
  };
  for (const box of boxes) {
    box.checked = known[box.dataset.path] ?? box.defaultChecked;
    box.addEventListener("change", remember);
  }
  button.addEventListener("click", () => {
    const open = !boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = open;
    remember();
  });
  update();
}

// The lines that a test reaches become links. The page has one link for each source: many links would make it
// large.
function linkLines(table) {
  for (const row of table.tBodies[0].rows) {
    const page = find("a", row).href.split("#")[0];
    for (const cell of all(".ranges", row)) {
      const links = cell.textContent.split(", ").flatMap((range) =>
        [", ", Object.assign(make("a", range), { href: `${page}#L${parseInt(range, 10)}` })]);
      cell.replaceChildren(...links.slice(1));
    }
  }
}

// The names of tests in the sets that have only numbers. They are in a script that all pages share.
function rocovTests(tests) {
  for (const set of all(".sets .numbers")) {
    const numbers = set.textContent.split(", ").flatMap((range) => {
      const [first, last] = range.split("-").map(Number);
      return Array.from({ length: (last ?? first) - first + 1 }, (_, index) => first + index);
    });
    const links = numbers.flatMap((number) => {
      const [name, page] = tests[number - 1];
      return [", ", Object.assign(make("a", name), { href: document.body.dataset.root + page })];
    });
    set.replaceChildren(...links.slice(1));
  }
}

function nameTests() {
  if (/^#t\d+$/.test(anchor()) && find(`${anchor()} .numbers`)) loadScript("names", "assets/tests.js");
}

// Loads a script of the report, once on each page.
async function loadScript(id, name) {
  const main = find("main");
  if (main.dataset[id]) return;
  main.dataset[id] = "loaded";
  const script = document.createElement("script");
  if (single.page) script.textContent = await single.text(name);
  else script.src = document.body.dataset.root + name;
  document.head.append(script);
}

// The adapter in the stand-in for VS Code, with the real command on the data of real runs.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import Module from "node:module";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { after, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import type * as vscode from "vscode";

import type { Extension } from "../src/extension.js";
import { data } from "./data.js";
import * as standIn from "./vscode.js";

const { editor } = standIn;
const loader = Module as unknown as { _load: (name: string, ...rest: unknown[]) => unknown };
const load = loader._load;
loader._load = (name, ...rest) => (name === "vscode" ? standIn : load(name, ...rest));
// eslint-disable-next-line @typescript-eslint/no-require-imports
const { activate } = require("../src/extension.js") as typeof import("../src/extension.js");

const folder = mkdtempSync(path.join(tmpdir(), "rocov-vscode-"));
cpSync(data("workspace"), folder, { recursive: true });
standIn.workspace.workspaceFolders.push({ uri: standIn.Uri.file(folder) });
const extension: Extension = activate({ subscriptions: [] as vscode.Disposable[] } as unknown as vscode.ExtensionContext);
after(() => {
  extension.dispose();
  rmSync(folder, { recursive: true });
});

const command = (name: string) => editor.commands.get(name) as (...args: unknown[]) => Promise<void>;
const scale = () => {
  const file = editor.runs.at(-1)?.files.find((each) => each.uri.fsPath.endsWith("scale.hip"));
  assert.ok(file);
  return file as unknown as vscode.FileCoverage;
};
const token = {} as vscode.CancellationToken;
const run = {} as vscode.TestRun;
const lines = (details: vscode.FileCoverageDetail[], ran: boolean) =>
  details.flatMap((each) =>
    each instanceof standIn.StatementCoverage && Boolean(each.executed) === ran ? [each.location.start.line + 1] : [],
  );

beforeEach(() => {
  editor.settings = { "rocov.command": process.env["ROCOV"] ?? "rocov" };
  editor.errors.length = 0;
});

test("Load Coverage shows files with their tests, and the status bar has the figures", async () => {
  await command("rocov.load")();
  assert.deepEqual(editor.errors, []);
  assert.equal(editor.runs.length, 1);
  assert.ok(editor.runs[0]?.isEnded);
  const names = editor.runs[0]?.files.map((file) => path.basename(file.uri.fsPath));
  assert.deepEqual(names?.sort(), ["main.hip", "scale.hip", "statistics.h", "statistics.hip"]);
  assert.deepEqual(editor.items.map((item) => item.label), ["full_blocks", "sample", "unit/part [of] a block"]);
  const shown = scale();
  assert.deepEqual(shown.includesTests?.map((item) => item.label), ["full_blocks", "unit/part [of] a block"]);
  assert.deepEqual({ ...shown.statementCoverage }, { covered: 7, total: 7 });
  assert.deepEqual({ ...shown.branchCoverage }, { covered: 2, total: 2 });
  assert.deepEqual({ ...shown.declarationCoverage }, { covered: 1, total: 1 });
  // The figure of the table of `rocov report`.
  const [, percent] = /^TOTAL(?: +\S+){8} +(\S+) /m.exec(readFileSync(data("tests.txt"), "utf8")) ?? [];
  assert.equal(editor.status.text, `$(beaker) rocov ${percent}`);
  assert.match((editor.status.tooltip as unknown as { value: string }).value, /^- \*\*gfx90a\*\*, [\d.]+% of 97 lines, /);
  assert.deepEqual(editor.watched.map((each) => each.base.fsPath), [path.join(folder, "rocov-data")]);
});

test("details of a file are its lines, branches and functions", async () => {
  const details = (await editor.profile.loadDetailedCoverage?.(run, scale(), token)) ?? [];
  assert.deepEqual(lines(details, true), [9, 10, 11, 12, 13, 14, 15]);
  const branches = details.flatMap((each) => (each instanceof standIn.StatementCoverage ? each.branches : []));
  // 64 and 100 numbers in blocks of 64: 28 work-items of the second block are beyond the end.
  assert.deepEqual(branches.map(({ label, executed }) => [label, executed]), [["true", 28], ["false", 164]]);
  const kernel = details.find((each) => each instanceof standIn.DeclarationCoverage);
  assert.ok(kernel && "name" in kernel);
  assert.deepEqual([kernel.name, kernel.executed], ["scale (kernel)", 192]);
});

test("details of a test are what it ran", async () => {
  const [full, part] = scale().includesTests ?? [];
  assert.ok(full && part);
  const ofTest = async (item: vscode.TestItem) =>
    (await editor.profile.loadDetailedCoverageForTest?.(run, scale(), item, token)) ?? [];
  assert.deepEqual(lines(await ofTest(full), true), [9, 10, 11, 14, 15]);
  assert.deepEqual(lines(await ofTest(part), true), [9, 10, 11, 12, 13, 14, 15]);
  assert.deepEqual(lines(await ofTest(full), false), []);
  assert.deepEqual(editor.errors, []);
});

test("Which tests reach this line lists them, from the cursor or from a line's menu", async () => {
  const uri = standIn.Uri.file(scale().uri.fsPath);
  await command("rocov.which")({ uri, lineNumber: 12 });
  assert.deepEqual(editor.picks.at(-1)?.map(({ label, description }) => [label, description]), [
    ["unit/part [of] a block", "gfx90a: 28"],
  ]);
  standIn.window.activeTextEditor = { document: { uri }, selection: { active: { line: 13 } } };
  await command("rocov.which")();
  assert.deepEqual(editor.picks.at(-1)?.map((item) => item.label), ["full_blocks", "unit/part [of] a block"]);
  await command("rocov.which")({ uri, lineNumber: 1 });
  assert.match(editor.errors.at(-1) ?? "", /scale\.hip:1/);
  const statistics = editor.runs.at(-1)?.files.find((file) => file.uri.fsPath.endsWith("statistics.hip"));
  assert.ok(statistics);
  const never = statistics.uri;
  const first = readFileSync(never.fsPath, "utf8").split("\n").findIndex((line) => line.includes("// never"));
  await command("rocov.which")({ uri: never, lineNumber: first + 1 });
  assert.match(editor.information.at(-1) ?? "", /^No test reaches statistics.hip:/);
});

test("a new run is shown without a command", async () => {
  const before = editor.runs.length;
  editor.changed[0]?.();
  editor.changed[0]?.();
  for (let turn = 0; editor.runs.length === before && turn < 300; turn++) {
    await sleep(100);
  }
  assert.equal(editor.runs.length, before + 1);
  assert.ok(editor.runs.at(-1)?.request.preserveFocus);
});

test("an architecture without data is an error, and what is shown stays", async () => {
  const before = editor.runs.length;
  editor.settings["rocov.architecture"] = "gfx942";
  await command("rocov.load")();
  assert.match(editor.errors.at(-1) ?? "", /gfx942/);
  assert.equal(editor.runs.length, before);
});

test("a missing command or directory is an error with the next step", async () => {
  editor.settings["rocov.command"] = "/no/rocov";
  await command("rocov.load")();
  assert.match(editor.errors.at(-1) ?? "", /^rocov: \/no\/rocov is not there: install rocov, or set rocov.command/);
  editor.settings["rocov.dataDirectory"] = "elsewhere";
  await command("rocov.load")();
  assert.match(editor.errors.at(-1) ?? "", /elsewhere does not exist: .* set rocov.dataDirectory$/);
});

test("Clear removes the coverage", async () => {
  await command("rocov.clear")();
  assert.deepEqual(editor.items, []);
  assert.equal(editor.status.text, "$(beaker) rocov");
  assert.deepEqual(editor.executed.at(-1), ["testing.coverage.close"]);
  assert.deepEqual(editor.changed, []);
});

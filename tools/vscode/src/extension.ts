// The adapter: VS Code's test coverage API, commands, the status bar and the watcher.

import { existsSync } from "node:fs";
import * as path from "node:path";

import * as vscode from "vscode";

import { type Log, report, reportOf, type Source, which } from "./command.js";
import { type ColumnFigures, type Coverage, coverageOf, type Line, type Place, type SourceFile, type Span } from "./coverage.js";
import type { Figure, TestCounts } from "./report.js";

/** The data directories that are looked for if the setting names none. */
const USUAL_DATA = ["rocov-data", path.join("build", "rocov-data")];

/** A run writes several files: coverage is loaded when there was no new one for so long. */
const QUIET_MILLISECONDS = 1000;

/** The column that ends a line, whatever its length. */
const END_OF_LINE = Number.MAX_SAFE_INTEGER;

/** Coverage that is shown. */
interface Loaded {
  source: Source;
  coverage: Coverage;
  files: WeakMap<vscode.FileCoverage, SourceFile>;
  /** The coverage of single tests, by name. */
  tests: Map<string, Promise<Coverage>>;
}

export function activate(context: vscode.ExtensionContext): Extension {
  const extension = new Extension();
  context.subscriptions.push(extension);
  return extension;
}

export class Extension implements vscode.Disposable {
  private readonly output = vscode.window.createOutputChannel("rocov");
  private readonly controller = vscode.tests.createTestController("rocov", "rocov");
  private readonly status = vscode.window.createStatusBarItem("rocov.coverage", vscode.StatusBarAlignment.Left);
  private readonly profile: vscode.TestRunProfile;
  private readonly disposables: vscode.Disposable[];
  private readonly log: Log = (text) => this.output.appendLine(text);
  private loaded: Loaded | undefined;
  private watcher: vscode.Disposable | undefined;

  constructor() {
    // Each list of tests is the labels of a data directory: a "run" shows what is there.
    this.profile = this.controller.createRunProfile("Show coverage", vscode.TestRunProfileKind.Coverage, () =>
      this.load(),
    );
    this.profile.loadDetailedCoverage = async (_run, file) => this.details(file);
    this.profile.loadDetailedCoverageForTest = async (_run, file, test) => this.detailsOfTest(file, test.label);
    this.status.name = "rocov";
    this.showFigures();
    this.status.show();
    const command = (name: string, run: (...args: never[]) => unknown) => vscode.commands.registerCommand(name, run);
    this.disposables = [
      this.output,
      this.controller,
      this.status,
      command("rocov.load", () => this.load()),
      command("rocov.clear", () => this.clear()),
      command("rocov.which", (place?: { uri: vscode.Uri; lineNumber: number }) => this.which(place)),
    ];
  }

  dispose(): void {
    this.watcher?.dispose();
    this.disposables.forEach((each) => each.dispose());
  }

  /** Loads the coverage of the data directory. */
  async load(): Promise<void> {
    const source = this.source();
    if (!source) {
      return;
    }
    let coverage;
    try {
      const progress = { location: vscode.ProgressLocation.Window, title: "rocov: loading coverage" };
      coverage = await vscode.window.withProgress(progress, async () => coverageOf(await report(source, this.log)));
    } catch (error) {
      this.fail(error);
      return;
    }
    this.show(source, coverage);
    this.watch(source);
  }

  /** Removes the coverage from the editor. */
  async clear(): Promise<void> {
    this.watcher?.dispose();
    this.watcher = undefined;
    this.loaded = undefined;
    this.controller.items.replace([]);
    this.showFigures();
    await vscode.commands.executeCommand("setContext", "rocov.isLoaded", false);
    await vscode.commands.executeCommand("testing.coverage.close");
  }

  /** Lists the tests that reach a line, by default that of the cursor. */
  async which(place?: { uri: vscode.Uri; lineNumber: number }): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const uri = place?.uri ?? editor?.document.uri;
    // A context menu counts lines from 1.
    const line = place?.lineNumber ?? (editor ? editor.selection.active.line + 1 : undefined);
    const source = this.loaded?.source ?? this.source();
    if (!uri || line === undefined || !source) {
      return;
    }
    let answers;
    try {
      answers = await which(source, uri.fsPath, line, this.log);
    } catch (error) {
      this.fail(error);
      return;
    }
    const items = answers.flatMap((answer) => answer.tests.map(itemOf));
    const name = `${path.basename(uri.fsPath)}:${line}`;
    if (items.length === 0) {
      void vscode.window.showInformationMessage(`No test reaches ${name}.`);
      return;
    }
    const title = `Tests that reach ${name}`;
    await vscode.window.showQuickPick(items, { title, matchOnDescription: true });
  }

  /** The data that the settings name, or undefined if there is none. */
  private source(): Source | undefined {
    const active = vscode.window.activeTextEditor?.document.uri;
    const folder = (active && vscode.workspace.getWorkspaceFolder(active)) ?? vscode.workspace.workspaceFolders?.[0];
    if (!folder) {
      this.fail(new Error("no folder is open: open that of your sources"));
      return undefined;
    }
    const settings = vscode.workspace.getConfiguration("rocov", folder.uri);
    const root = folder.uri.fsPath;
    const named = settings.get("dataDirectory", "");
    const candidates = (named ? [named] : USUAL_DATA).map((name) => path.resolve(root, name));
    const data = candidates.find((each) => existsSync(each));
    if (!data) {
      const message = `${candidates.join(" and ")} ${candidates.length > 1 ? "do" : "does"} not exist`;
      this.fail(new Error(`${message}: run your program under \`rocov run\`, or set rocov.dataDirectory`));
      return undefined;
    }
    const command = settings.get("command", "rocov");
    return { command, data, folder: root, architecture: settings.get("architecture", "") };
  }

  private show(source: Source, coverage: Coverage): void {
    const items = coverage.tests.map((name) => this.controller.createTestItem(name, name));
    this.controller.items.replace(items);
    const byName = new Map(items.map((item) => [item.label, item]));
    // The results of tests are not of interest here: the panel that has them stays as it is.
    const preserveFocus = true;
    const request = new vscode.TestRunRequest(undefined, undefined, this.profile, false, preserveFocus);
    const run = this.controller.createTestRun(request, "rocov", false);
    const loaded: Loaded = { source, coverage, files: new WeakMap(), tests: new Map() };
    this.loaded = loaded;
    for (const file of coverage.files) {
      const { lines, branches, functions } = file.figures();
      const tests = [...file.tests].flatMap((name) => byName.get(name) ?? []);
      const count = ({ covered, total }: { covered: number; total: number }) =>
        new vscode.TestCoverageCount(covered, total);
      const shown = new vscode.FileCoverage(
        vscode.Uri.file(path.resolve(source.folder, file.path)),
        count(lines),
        branches.total > 0 ? count(branches) : undefined,
        count(functions),
        tests,
      );
      loaded.files.set(shown, file);
      run.addCoverage(shown);
    }
    for (const column of coverage.columns) {
      run.appendOutput(`${column.name}: ${rowOf(column).join(", ")}\r\n`);
    }
    run.end();
    this.showFigures();
    void vscode.commands.executeCommand("setContext", "rocov.isLoaded", true);
  }

  private details(shown: vscode.FileCoverage): vscode.FileCoverageDetail[] {
    const file = this.loaded?.files.get(shown);
    return file ? detailsOf(file) : [];
  }

  /** The parts of a file that a test ran. */
  private async detailsOfTest(shown: vscode.FileCoverage, test: string): Promise<vscode.FileCoverageDetail[]> {
    const { loaded } = this;
    const file = loaded?.files.get(shown);
    if (!loaded || !file) {
      return [];
    }
    let coverage = loaded.tests.get(test);
    if (!coverage) {
      coverage = reportOf(loaded.source, test, this.log).then(coverageOf);
      loaded.tests.set(test, coverage);
    }
    try {
      const ofTest = (await coverage).files.find((each) => each.path === file.path);
      return ofTest ? detailsOf(ofTest).filter((detail) => Number(detail.executed) > 0) : [];
    } catch (error) {
      loaded.tests.delete(test);
      this.fail(error);
      return [];
    }
  }

  /** Loads anew when a run has written to the data directory. */
  private watch(source: Source): void {
    this.watcher?.dispose();
    this.watcher = undefined;
    const settings = vscode.workspace.getConfiguration("rocov", vscode.Uri.file(source.folder));
    if (!settings.get("watch", true)) {
      return;
    }
    const files = vscode.workspace.createFileSystemWatcher(
      new vscode.RelativePattern(vscode.Uri.file(source.data), "**/*.{profraw,blocks}"),
    );
    let timer: NodeJS.Timeout | undefined;
    const changed = () => {
      clearTimeout(timer);
      timer = setTimeout(() => void this.load(), QUIET_MILLISECONDS);
    };
    const events = [files.onDidCreate(changed), files.onDidChange(changed)];
    this.watcher = {
      dispose: () => {
        clearTimeout(timer);
        [...events, files].forEach((each) => each.dispose());
      },
    };
  }

  private showFigures(): void {
    const columns = this.loaded?.coverage.columns;
    if (!columns) {
      this.status.text = "$(beaker) rocov";
      this.status.tooltip = "Load the coverage of GPU code";
      this.status.command = "rocov.load";
      return;
    }
    const several = columns.length > 1;
    const figures = columns.map(({ name, totals }) => `${several ? `${name} ` : ""}${percent(totals.lines)}`);
    this.status.text = `$(beaker) rocov ${figures.join(" · ")}`;
    const rows = columns.map((column) => `- ${[`**${column.name}**`, ...rowOf(column)].join(", ")}`);
    this.status.tooltip = new vscode.MarkdownString(rows.join("\n"));
    this.status.command = "testing.openCoverage";
  }

  private fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.log(message);
    const show = "Show Output";
    void vscode.window.showErrorMessage(`rocov: ${message.replace(/^rocov: /, "")}`, show).then((chosen) => {
      if (chosen === show) {
        this.output.show();
      }
    });
  }
}

/** The statements of a file are its lines, as in the table of `rocov report`. */
function detailsOf(file: SourceFile): vscode.FileCoverageDetail[] {
  const lines = [...file.lines].sort(([a], [b]) => a - b);
  const statements = lines.map(([number, { count, branches }]) => {
    const whole = new vscode.Range(number - 1, 0, number - 1, END_OF_LINE);
    return new vscode.StatementCoverage(count, whole, branches.flatMap(branchesOf));
  });
  const functions = file.functions.map(({ name, isKernel, start, calls }) => {
    return new vscode.DeclarationCoverage(isKernel ? `${name} (kernel)` : name, calls, position(start));
  });
  return [...statements, ...functions];
}

function branchesOf({ span, sides }: Line["branches"][number]): vscode.BranchCoverage[] {
  const place = span && range(span);
  return sides.flatMap((count, side) => {
    const label = side === 0 ? "true" : "false";
    return count === undefined ? [] : new vscode.BranchCoverage(count, place, label);
  });
}

function position({ line, column }: Place): vscode.Position {
  return new vscode.Position(line - 1, column - 1);
}

function range({ start, end }: Span): vscode.Range {
  return new vscode.Range(position(start), position(end));
}

function itemOf({ label, shared_with, counts }: TestCounts): vscode.QuickPickItem {
  const item: vscode.QuickPickItem = {
    label: label ?? "(no label)",
    description: Object.entries(counts).map(([arch, count]) => `${arch}: ${count}`).join(", "),
  };
  if (shared_with.length > 0) {
    item.detail = `Some of these counts may be of ${shared_with.join(", ")}`;
  }
  return item;
}

/** The percentage as the table of `rocov report` has it. */
function percent({ count, percent }: Figure): string {
  return count === 0 ? "-" : `${percent.toFixed(2)}%`;
}

/** The figures of a column, each with its name. */
function rowOf({ totals: { lines, functions, regions, branches } }: ColumnFigures): string[] {
  const named = { lines, functions, regions, branches };
  return Object.entries(named).map(([name, figure]) => `${percent(figure)} of ${figure.count} ${name}`);
}

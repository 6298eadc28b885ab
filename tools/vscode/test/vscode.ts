// A stand-in for the module `vscode`: the parts that the extension uses, typed as VS Code's own. Tests look into it.

import type * as vscode from "vscode";

type Api = typeof vscode;

class Position implements Pick<vscode.Position, "line" | "character"> {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

class Range implements Pick<vscode.Range, never> {
  readonly start: Position;
  readonly end: Position;
  constructor(start: Position | number, end: Position | number, endLine?: number, endCharacter?: number) {
    this.start = start instanceof Position ? start : new Position(start, end as number);
    this.end = end instanceof Position ? end : new Position(endLine ?? 0, endCharacter ?? 0);
    // As VS Code does for a place that there cannot be.
    for (const number of [this.start.line, this.start.character, this.end.line, this.end.character]) {
      if (number < 0) {
        throw new Error(`illegal argument: ${number}`);
      }
    }
  }
}

class Uri implements Pick<vscode.Uri, "fsPath" | "scheme"> {
  readonly scheme = "file";
  private constructor(readonly fsPath: string) {}
  static file(path: string): Uri {
    return new Uri(path);
  }
}

class TestCoverageCount implements vscode.TestCoverageCount {
  constructor(
    public covered: number,
    public total: number,
  ) {
    if (covered > total) {
      throw new Error(`The total number of items, ${total}, cannot be smaller than the covered ${covered}`);
    }
  }
}

class FileCoverage {
  constructor(
    readonly uri: Uri,
    public statementCoverage: TestCoverageCount,
    public branchCoverage?: TestCoverageCount,
    public declarationCoverage?: TestCoverageCount,
    public includesTests?: vscode.TestItem[],
  ) {}
}

class BranchCoverage {
  constructor(
    public executed: number,
    public location?: Range,
    public label?: string,
  ) {}
}

class StatementCoverage {
  constructor(
    public executed: number,
    public location: Range,
    public branches: BranchCoverage[] = [],
  ) {}
}

class DeclarationCoverage {
  constructor(
    public name: string,
    public executed: number,
    public location: Position,
  ) {}
}

class TestRunRequest {
  constructor(
    readonly include: unknown,
    readonly exclude: unknown,
    readonly profile: vscode.TestRunProfile,
    readonly continuous: boolean,
    readonly preserveFocus: boolean,
  ) {}
}

class RelativePattern {
  constructor(
    readonly base: Uri,
    readonly pattern: string,
  ) {}
}

class MarkdownString {
  constructor(readonly value: string) {}
}

/** What the extension did, and what it finds. */
export const editor = {
  settings: {} as Record<string, unknown>,
  commands: new Map<string, (...args: never[]) => unknown>(),
  executed: [] as unknown[][],
  errors: [] as string[],
  information: [] as string[],
  picks: [] as vscode.QuickPickItem[][],
  runs: [] as { request: TestRunRequest; files: FileCoverage[]; isEnded: boolean }[],
  items: [] as vscode.TestItem[],
  output: [] as string[],
  watched: [] as RelativePattern[],
  changed: [] as (() => void)[],
  status: {} as vscode.StatusBarItem,
  profile: {} as vscode.TestRunProfile,
};

const nothing = { dispose: () => undefined };

function createTestController(): Partial<vscode.TestController> {
  return {
    items: {
      replace: (items: readonly vscode.TestItem[]) => {
        editor.items = [...items];
      },
    } as Partial<vscode.TestItemCollection> as vscode.TestItemCollection,
    createTestItem: (id: string, label: string) => ({ id, label }) as vscode.TestItem,
    createRunProfile: (label, kind, runHandler) => {
      editor.profile = { label, kind, runHandler } as vscode.TestRunProfile;
      return editor.profile;
    },
    createTestRun: (request) => {
      const run = { request: request as unknown as TestRunRequest, files: [] as FileCoverage[], isEnded: false };
      editor.runs.push(run);
      return {
        appendOutput: (text: string) => editor.output.push(text),
        addCoverage: (file: unknown) => run.files.push(file as FileCoverage),
        end: () => {
          run.isEnded = true;
        },
      } as Partial<vscode.TestRun> as vscode.TestRun;
    },
    ...nothing,
  };
}

const on = (run: () => void) => {
  editor.changed.push(run);
  return { dispose: () => void editor.changed.splice(editor.changed.indexOf(run), 1) };
};

export const window = {
  activeTextEditor: undefined as unknown,
  createOutputChannel: () => ({ appendLine: (line: string) => editor.output.push(line), show: () => undefined, ...nothing }),
  createStatusBarItem: () => (editor.status = { show: () => undefined, ...nothing } as Partial<vscode.StatusBarItem> as vscode.StatusBarItem),
  withProgress: <T>(_options: vscode.ProgressOptions, task: () => Thenable<T>) => task(),
  showErrorMessage: (message: string) => {
    editor.errors.push(message);
    return Promise.resolve(undefined);
  },
  showInformationMessage: (message: string) => {
    editor.information.push(message);
    return Promise.resolve(undefined);
  },
  showQuickPick: (items: vscode.QuickPickItem[]) => {
    editor.picks.push(items);
    return Promise.resolve(undefined);
  },
};

export const workspace = {
  workspaceFolders: [] as { uri: Uri }[],
  getWorkspaceFolder: () => undefined,
  getConfiguration: (section: string) => ({
    get: (name: string, fallback: unknown) => editor.settings[`${section}.${name}`] ?? fallback,
  }),
  createFileSystemWatcher: (pattern: RelativePattern) => {
    editor.watched.push(pattern);
    return { onDidCreate: on, onDidChange: on, ...nothing };
  },
};

export const commands = {
  registerCommand: (name: string, run: (...args: never[]) => unknown) => {
    editor.commands.set(name, run);
    return nothing;
  },
  executeCommand: (...command: unknown[]) => {
    editor.executed.push(command);
    return Promise.resolve();
  },
};

export const tests = { createTestController };
export const TestRunProfileKind: Pick<Api["TestRunProfileKind"], "Coverage"> = { Coverage: 3 };
export const StatusBarAlignment: Pick<Api["StatusBarAlignment"], "Left"> = { Left: 1 };
export const ProgressLocation: Pick<Api["ProgressLocation"], "Window"> = { Window: 10 };
export {
  BranchCoverage,
  DeclarationCoverage,
  FileCoverage,
  MarkdownString,
  Position,
  Range,
  RelativePattern,
  StatementCoverage,
  TestCoverageCount,
  TestRunRequest,
  Uri,
};

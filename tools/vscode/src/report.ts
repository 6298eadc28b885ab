// The JSON of `rocov report --json`: llvm-cov's own, with an export for each column of `rocov.columns`.

/** Line, column, count, whether it has a count, whether a region starts, whether that is a gap. */
export type Segment = [number, number, number, boolean, boolean, boolean];

/** Start, end, count, file, the file that is expanded here, kind. */
export type Region = [number, number, number, number, number, number, number, number];

/** Start, end, the counts of the true and the false side, file, the file that is expanded here, kind. */
export type Branch = [number, number, number, number, number, number, number, number, number];

export interface Figure {
  count: number;
  covered: number;
  percent: number;
}

export interface Summary {
  lines: Figure;
  functions: Figure;
  regions: Figure;
  branches: Figure;
}

export interface FunctionExport {
  name: string;
  count: number;
  filenames: string[];
  regions: Region[];
  branches: Branch[];
}

export interface Export {
  files: { filename: string; segments: Segment[]; summary: Summary }[];
  functions: FunctionExport[];
  totals: Summary;
}

export interface Column {
  /** The GPU architecture, or the host. */
  name: string;
  side: "device" | "host";
  /** Mangled names. */
  kernels: string[];
  /** Sides of branches that the compiler folded: the numbers of the function, of its branch and of the side. */
  folded: [number, number, 0 | 1][];
}

/** A test, with the files that it reached in each column. */
export interface Test {
  name: string;
  columns: { name: string; files?: string[] }[];
}

export interface Report {
  rocov: { version: string; columns: Column[]; tests?: Test[] };
  data: Export[];
}

/** Reads the output of `rocov report --json`. */
export function readReport(text: string): Report {
  const report = JSON.parse(text) as Partial<Report> & { type?: string };
  const { rocov, data } = report;
  if (report.type !== "llvm.coverage.json.export" || !rocov || !data || data.length !== rocov.columns.length) {
    throw new Error("the output is no report of `rocov report --json`: check the setting rocov.command");
  }
  if (data.some((column) => !column.functions)) {
    throw new Error("the report has only figures: remove summary-only from [report] in rocov.toml");
  }
  return { rocov, data };
}

/** The counts of a test on a line, by architecture. */
export interface TestCounts {
  /** Null for counts without a label. */
  label: string | null;
  /** Other tests that these counts may be of. */
  shared_with: string[];
  counts: Record<string, number>;
}

/** What `rocov which --json` prints about a line. */
export interface LineAnswer {
  source: string;
  line: number;
  archs: string[];
  tests: TestCounts[];
}

/** Reads the output of `rocov which --json`. */
export function readAnswers(text: string): LineAnswer[] {
  const answers = JSON.parse(text) as { rocov_which?: number; lines?: LineAnswer[] };
  if (answers.rocov_which !== 1 || !answers.lines) {
    throw new Error("the output is not of `rocov which --json`, version 1: take the extension of your version of rocov");
  }
  return answers.lines;
}

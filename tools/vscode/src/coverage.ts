// The coverage of an editor, from a report: a file has lines, and these have branches. Nothing here depends on VS Code.

import { plainName } from "./names.js";
import type { Branch as BranchExport, Column, Export, FunctionExport, Report, Segment, Summary } from "./report.js";

/** A place in a source. Lines and columns start at 1. */
export interface Place {
  line: number;
  column: number;
}

export interface Span {
  start: Place;
  end: Place;
}

/** The sides of a branch: the number of times that each was taken. */
export interface Branch {
  /** Not there if the branch is in a macro that the line uses. */
  span?: Span;
  /** Undefined for a side that the compiler folded. */
  sides: [number | undefined, number | undefined];
}

export interface Line {
  count: number;
  branches: Branch[];
}

/** A function, or all instances of a template. */
export interface FunctionCoverage {
  name: string;
  isKernel: boolean;
  start: Place;
  calls: number;
}

export interface Count {
  covered: number;
  total: number;
}

/** The coverage of a source file. */
export class SourceFile {
  readonly lines = new Map<number, Line>();
  readonly functions: FunctionCoverage[] = [];
  /** The names of the tests that reached it. */
  readonly tests = new Set<string>();

  constructor(readonly path: string) {}

  /** The number of lines, of sides of branches, and of functions. */
  figures(): { lines: Count; branches: Count; functions: Count } {
    const lines = [...this.lines.values()];
    const sides = lines.flatMap((line) => line.branches.flatMap((branch) => branch.sides));
    return {
      lines: count(lines.map((line) => line.count)),
      branches: count(sides.filter((side) => side !== undefined)),
      functions: count(this.functions.map((each) => each.calls)),
    };
  }
}

function count(counts: number[]): Count {
  return { covered: counts.filter((each) => each > 0).length, total: counts.length };
}

/** The figures of a GPU architecture, or of the host. */
export interface ColumnFigures {
  name: string;
  totals: Summary;
}

export interface Coverage {
  columns: ColumnFigures[];
  files: SourceFile[];
  /** The names of the tests, in order. */
  tests: string[];
}

/** The name of counts that belong to no test. */
const UNLABELLED = "(no label)";

/** Joins the columns of a report. Counts of GPU architectures are added; the host's do not add to these. */
export function coverageOf(report: Report): Coverage {
  const files = new Map<string, SourceFile>();
  for (const side of ["device", "host"] as const) {
    const ofSide = new Map<string, SourceFile>();
    report.data.forEach((data, index) => {
      const column = report.rocov.columns[index];
      if (column?.side === side) {
        addColumn(ofSide, column, data);
      }
    });
    for (const [path, file] of ofSide) {
      const other = files.get(path);
      files.set(path, other ? joined(other, file) : file);
    }
  }
  const tests = (report.rocov.tests ?? []).filter((test) => test.name !== UNLABELLED);
  for (const test of tests) {
    for (const path of test.columns.flatMap((column) => column.files ?? [])) {
      files.get(path)?.tests.add(test.name);
    }
  }
  return {
    columns: report.data.map((data, index) => ({ name: report.rocov.columns[index]?.name ?? "", totals: data.totals })),
    files: [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1)),
    tests: tests.map((test) => test.name),
  };
}

function addColumn(files: Map<string, SourceFile>, column: Column, data: Export): void {
  for (const { filename, segments } of data.files) {
    const file = files.get(filename) ?? new SourceFile(filename);
    files.set(filename, file);
    for (const [number, count] of linesOf(segments)) {
      const line = file.lines.get(number);
      if (line) {
        line.count += count;
      } else {
        file.lines.set(number, { count, branches: [] });
      }
    }
  }
  const kernels = new Set(column.kernels);
  const folded = new Set(column.folded.map((place) => place.join()));
  data.functions.forEach((each, index) => {
    const main = mainFile(each);
    const path = each.filenames[main];
    const file = path === undefined ? undefined : files.get(path);
    if (file) {
      addFunction(file, each, main, kernels.has(each.name));
    }
    each.branches.forEach((branch, number) => {
      const [trueFolded, falseFolded] = ([0, 1] as const).map((side) => folded.has([index, number, side].join()));
      const sides: Branch["sides"] = [trueFolded ? undefined : branch[4], falseFolded ? undefined : branch[5]];
      addBranch(files, each, main, branch, sides);
    });
  });
}

function addFunction(file: SourceFile, added: FunctionExport, main: number, isKernel: boolean): void {
  const region = added.regions.find((each) => each[5] === main);
  if (!region) {
    return;
  }
  const [line, column] = region;
  const name = plainName(added.name);
  const known = file.functions.find((each) => each.start.line === line && each.start.column === column && each.name === name);
  if (known) {
    known.calls += added.count;
  } else {
    file.functions.push({ name, isKernel, start: { line, column }, calls: added.count });
  }
}

/** Adds a branch to the line that has it. A branch in a macro belongs to the line that uses the macro, too. */
function addBranch(
  files: Map<string, SourceFile>,
  within: FunctionExport,
  main: number,
  branch: BranchExport,
  sides: Branch["sides"],
): void {
  const [line, column, endLine, endColumn, , , file] = branch;
  const span = { start: { line, column }, end: { line: endLine, column: endColumn } };
  const here = files.get(within.filenames[file] ?? "")?.lines.get(line);
  if (here) {
    merge(here.branches, { span, sides });
  }
  const use = useOf(within, main, file);
  const using = use && files.get(within.filenames[main] ?? "")?.lines.get(use.line);
  if (using) {
    // Instances of a template use the macro once: their branches are one by the place of the use and that in the macro.
    merge(using.branches, { sides }, [use.line, use.column, line, column].join());
  }
}

/** The keys of branches in macros. */
const keys = new WeakMap<Branch, string>();

function merge(branches: Branch[], added: Branch, key = spanKey(added)): void {
  const known = branches.find((branch) => keys.get(branch) === key);
  if (!known) {
    keys.set(added, key);
    branches.push(added);
    return;
  }
  for (const side of [0, 1] as const) {
    const count = added.sides[side];
    if (count !== undefined) {
      known.sides[side] = (known.sides[side] ?? 0) + count;
    }
  }
}

function spanKey({ span }: Branch): string {
  return span ? [span.start.line, span.start.column, span.end.line, span.end.column].join() : "";
}

/** The place in the main file that leads to a file of a function by the use of macros. */
function useOf({ regions, filenames }: FunctionExport, main: number, file: number): Place | undefined {
  let use: Place | undefined;
  for (let steps = 0; file !== main && steps < filenames.length; steps++) {
    const expansion = regions.find((region) => region[7] === EXPANSION && region[6] === file);
    if (!expansion) {
      return undefined;
    }
    use = { line: expansion[0], column: expansion[1] };
    file = expansion[5];
  }
  return use;
}

/** The kind of a region that is the use of a macro. */
const EXPANSION = 1;

/** The number of the file that a function is defined in: no macro of the function leads to it. */
function mainFile({ regions, filenames }: FunctionExport): number {
  const expanded = new Set(regions.filter((region) => region[7] === EXPANSION).map((region) => region[6]));
  return Math.max(filenames.findIndex((_, file) => !expanded.has(file)), 0);
}

/** The counts of lines by llvm-cov's rule: the largest count of the regions that start on it or lead into it. */
export function linesOf(segments: Segment[]): Map<number, number> {
  const lines = new Map<number, number>();
  let around: Segment | undefined;
  let next = 0;
  for (let number = segments[0]?.[0] ?? 1; next < segments.length; number++) {
    const first = next;
    while (segments[next]?.[0] === number) {
      next++;
    }
    const count = lineCount(segments.slice(first, next), around);
    if (count !== undefined) {
      lines.set(number, count);
    }
    around = segments[next - 1] ?? around;
  }
  return lines;
}

function lineCount(here: Segment[], around: Segment | undefined): number | undefined {
  const inside = around?.[3] ? around : undefined;
  if (here.length === 0) {
    return inside?.[2];
  }
  const entries = here.filter(([, , , hasCount, isEntry]) => hasCount && isEntry);
  const [first] = here;
  const startsSkipped = first !== undefined && !first[3] && first[4];
  if (entries.length === 0 && (startsSkipped || !inside)) {
    return undefined;
  }
  const counts = entries.filter(([, , , , , isGap]) => !isGap).map(([, , count]) => count);
  return Math.max(around?.[2] ?? 0, ...counts);
}

/** The larger counts of both: a source that GPU and host run has the counts of each. */
function joined(device: SourceFile, host: SourceFile): SourceFile {
  for (const [number, line] of host.lines) {
    const own = device.lines.get(number);
    if (own) {
      own.count = Math.max(own.count, line.count);
      for (const branch of line.branches) {
        const known = own.branches.find((each) => keys.get(each) === keys.get(branch));
        if (known) {
          known.sides = [larger(known.sides[0], branch.sides[0]), larger(known.sides[1], branch.sides[1])];
        } else {
          own.branches.push(branch);
        }
      }
    } else {
      device.lines.set(number, line);
    }
  }
  for (const each of host.functions) {
    const known = device.functions.find(({ name, start }) => name === each.name && start.line === each.start.line);
    if (known) {
      known.calls = Math.max(known.calls, each.calls);
    } else {
      device.functions.push(each);
    }
  }
  return device;
}

function larger(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

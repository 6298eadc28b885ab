// The model, on reports that rocov wrote. tools/dev/vscode makes these.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import * as path from "node:path";
import { test } from "node:test";

import { coverageOf, linesOf, type SourceFile } from "../src/coverage.js";
import { plainName } from "../src/names.js";
import { readAnswers, readReport, type Segment } from "../src/report.js";
import { data } from "./data.js";

/** The records of an LCOV file, by source: those that start with a name. */
function lcovOf(name: string): Map<string, Map<string, string[]>> {
  const sources = new Map<string, Map<string, string[]>>();
  let source = new Map<string, string[]>();
  for (const line of readFileSync(data(name), "utf8").split("\n")) {
    const [, key, value] = /^([A-Z]+):(.*)$/.exec(line) ?? [];
    if (key === "SF") {
      source = new Map();
      sources.set(value ?? "", source);
    } else if (key && value !== undefined) {
      source.set(key, [...(source.get(key) ?? []), value]);
    }
  }
  return sources;
}

function read(name: string) {
  return readReport(readFileSync(data(name), "utf8"));
}

/** The lines of a source that its comments mark. */
function marked(file: SourceFile, mark: string): number[] {
  const lines = readFileSync(file.path, "utf8").split("\n");
  return lines.flatMap((line, index) => (line.includes(mark) ? [index + 1] : []));
}

for (const name of ["sample", "archs"]) {
  // Not each HIP supports the two architectures of `archs`.
  const skip = !existsSync(data(`${name}.json`));
  test(`lines, branches and functions of ${name} are those of LCOV`, { skip }, () => {
    const lcov = lcovOf(`${name}.info`);
    const { files } = coverageOf(read(`${name}.json`));
    assert.deepEqual(new Set(files.map((file) => file.path)), new Set(lcov.keys()));
    for (const file of files) {
      const records = lcov.get(file.path);
      const lines = [...file.lines].sort(([a], [b]) => a - b).map(([line, { count }]) => `${line},${count}`);
      assert.deepEqual(lines, records?.get("DA"), file.path);
      // LCOV numbers the branches of a line.
      const taken = (records?.get("BRDA") ?? []).map((record) => record.replace(/,\d+,\d+,/, ",").replace("-", "0"));
      const sides = [...file.lines].flatMap(([line, { branches }]) =>
        branches.flatMap((branch) => branch.sides.flatMap((side) => (side === undefined ? [] : [`${line},${side}`]))),
      );
      assert.deepEqual(sides.sort(), taken.sort(), file.path);
      const figures = file.figures();
      assert.deepEqual([figures.lines.total, figures.lines.covered].map(String), [records?.get("LF"), records?.get("LH")].flat());
      const calls = file.functions.map((each) => each.calls).reduce((a, b) => a + b, 0);
      const expected = (records?.get("FNDA") ?? []).map((record) => Number(record.split(",")[0])).reduce((a, b) => a + b, 0);
      assert.equal(calls, expected, file.path);
    }
  });
}

test("the lines that the sample marks did not run", () => {
  const { files, columns } = coverageOf(read("sample.json"));
  assert.equal(files.length, 3);
  for (const file of files) {
    const missed = [...file.lines].filter(([, { count }]) => count === 0).map(([line]) => line);
    assert.deepEqual(missed.sort((a, b) => a - b), marked(file, "// never"), file.path);
  }
  const table = readFileSync(data("sample.txt"), "utf8");
  const [, lines, missed] = /^TOTAL(?: +\S+){6} +(\d+) +(\d+) /m.exec(table) ?? [];
  const total = columns[0]?.totals.lines;
  assert.deepEqual([total?.count, total && total.count - total.covered].map(String), [lines, missed]);
});

test("functions have readable names, and kernels are marked", () => {
  const { files } = coverageOf(read("sample.json"));
  const functions = files.flatMap((file) => file.functions);
  const kernels = functions.filter((each) => each.isKernel).map((each) => each.name);
  assert.deepEqual(kernels.sort(), ["block_sums_kernel", "clean_kernel<…>", "histogram_kernel", "scale_kernel", "steps_kernel"]);
  for (const { name, start } of functions) {
    const file = files.find((each) => each.functions.some((one) => one.name === name));
    const lines = readFileSync(file?.path ?? "", "utf8").split("\n");
    // A function starts at the brace after its name, which may be on the line before.
    const text = lines.slice(Math.max(start.line - 3, 0), start.line).join("\n");
    assert.ok(text.includes(name.replace("<…>", "")), `${name} at ${start.line}`);
  }
});

test("a test reaches only files that it ran", () => {
  const { files, tests } = coverageOf(read("tests.json"));
  assert.deepEqual(tests, ["full_blocks", "sample", "unit/part [of] a block"]);
  const scale = files.find((file) => path.basename(file.path) === "scale.hip");
  assert.deepEqual([...(scale?.tests ?? [])], ["full_blocks", "unit/part [of] a block"]);
  const main = files.find((file) => path.basename(file.path) === "main.hip");
  assert.deepEqual([...(main?.tests ?? [])], ["sample"]);
});

test("other output is rejected", () => {
  assert.throws(() => readReport("{}"), /check the setting rocov.command/);
  assert.throws(() => readAnswers(`{"rocov_which": 2, "lines": []}`), /version 1/);
});

test("a line has the largest count of its regions", () => {
  const code = (line: number, column: number, count: number): Segment => [line, column, count, true, true, false];
  const end = (line: number, column: number): Segment => [line, column, 0, false, false, false];
  const lines = linesOf([code(2, 1, 5), code(3, 9, 7), [3, 12, 5, true, false, false], end(5, 2), code(9, 1, 0), end(9, 4)]);
  assert.deepEqual([...lines], [[2, 5], [3, 7], [4, 5], [5, 5], [9, 0]]);
  assert.deepEqual([...linesOf([])], []);
});

test("mangled names become plain ones", () => {
  // c++filt demangles them: scale(float*, int), my::ns::scale<float>(float*), Box<int>::get() const, main.
  const names = ["_Z5scalePfi", "_ZN2my2ns5scaleIfEEvPT_", "_ZN3BoxIiE3getEv", "main", "a.hip:_ZL6bin_offff", "_Z999x"];
  assert.deepEqual(names.map(plainName), ["scale", "scale<…>", "Box<…>", "main", "bin_of", "_Z999x"]);
});

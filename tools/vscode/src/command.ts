// Runs the command rocov. Nothing here depends on VS Code.

import { execFile } from "node:child_process";

import { type LineAnswer, readAnswers, readReport, type Report } from "./report.js";

/** The data that the command reads. */
export interface Source {
  /** The path of the command. */
  command: string;
  /** The data directory. */
  data: string;
  /** The directory that the command runs in. A rocov.toml there applies. */
  folder: string;
  /** The only GPU architecture, or an empty string. */
  architecture: string;
}

/** The command ended with a status that is not 0, or did not start. */
export class CommandError extends Error {}

/** Takes each line that a command printed on standard error. */
export type Log = (text: string) => void;

const LARGEST_OUTPUT = 2 ** 30;

function run(source: Source, args: string[], log: Log, signal?: AbortSignal): Promise<string> {
  log(`$ ${[source.command, ...args].join(" ")}`);
  return new Promise((resolve, reject) => {
    const options = { cwd: source.folder, maxBuffer: LARGEST_OUTPUT, signal };
    execFile(source.command, args, options, (error, stdout, stderr) => {
      const messages = stderr.trim();
      if (messages) {
        log(messages);
      }
      if (!error) {
        resolve(stdout);
      } else if (error.code === "ENOENT") {
        reject(new CommandError(`${source.command} is not there: install rocov, or set rocov.command to its path`));
      } else {
        reject(new CommandError(messages || error.message));
      }
    });
  });
}

function ofArchitecture({ architecture }: Source): string[] {
  return architecture ? ["--arch", architecture] : [];
}

/** The report of all runs, with their tests if runs have labels. */
export async function report(source: Source, log: Log, signal?: AbortSignal): Promise<Report> {
  const args = ["report", source.data, "--json", "-", ...ofArchitecture(source)];
  let text;
  try {
    text = await run(source, [...args, "--per-test"], log, signal);
  } catch (error) {
    if (!(error instanceof CommandError) || signal?.aborted) {
      throw error;
    }
    // Without labels there is no report by test. Any other failure happens again.
    text = await run(source, args, log, signal);
  }
  return readReport(text);
}

/** The report of one test. */
export async function reportOf(source: Source, test: string, log: Log, signal?: AbortSignal): Promise<Report> {
  // A label is a glob: its name stands for itself only.
  const label = test.replace(/[*?[\]{}!\\]/g, "\\$&");
  const args = ["report", source.data, "--json", "-", "--label", label, ...ofArchitecture(source)];
  return readReport(await run(source, args, log, signal));
}

/** The tests that reach a line. */
export async function which(source: Source, file: string, line: number, log: Log): Promise<LineAnswer[]> {
  const args = ["which", `${file}:${line}`, source.data, "--json", ...ofArchitecture(source)];
  return readAnswers(await run(source, args, log));
}

import * as path from "node:path";

/** A file of the directory that tools/dev/vscode makes: reports, and a workspace with data of runs. */
export function data(name: string): string {
  const directory = process.env["ROCOV_VSCODE_DATA"];
  if (!directory) {
    throw new Error("ROCOV_VSCODE_DATA is not set: start these tests by tools/dev/vscode");
  }
  return path.join(directory, name);
}

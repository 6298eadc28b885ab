// Looks at the extension in a real editor: npm's code-server, in headless Chromium, which is driven over its pipe.
// node picture.js SERVER VSIX WORKSPACE DIRECTORY: writes pictures of the editor to DIRECTORY.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import * as path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Readable, Writable } from "node:stream";

type Reply = Record<string, unknown>;

/** The text field of the editor's lists, if one is open. */
const INPUT = `document.querySelector(".quick-input-widget input")?.offsetParent`;

/** Chromium's protocol for its developer tools: JSON with a zero byte after each message. */
class Browser {
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private readonly input: Writable;
  private last = 0;
  session: string | undefined;

  constructor(readonly child: ChildProcess) {
    this.input = child.stdio[3] as Writable;
    let text = "";
    (child.stdio[4] as Readable).setEncoding("utf8").on("data", (more: string) => {
      const messages = (text + more).split("\0");
      text = messages.pop() ?? "";
      for (const message of messages) {
        const { id, result, error } = JSON.parse(message) as { id?: number; result?: Reply; error?: { message: string } };
        if (id !== undefined) {
          this.waiting.get(id)?.(result ?? { error: error?.message });
          this.waiting.delete(id);
        }
      }
    });
  }

  send(method: string, params: Reply = {}): Promise<Reply> {
    const id = ++this.last;
    this.input.write(`${JSON.stringify({ id, method, params, sessionId: this.session })}\0`);
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }

  /** The value of an expression in the page. */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = (await this.send("Runtime.evaluate", { expression, returnByValue: true })) as { result?: Reply };
    return result?.["value"];
  }

  /** Waits until an expression is true. */
  async until(expression: string, what: string): Promise<void> {
    for (let turn = 0; turn < 600; turn++) {
      if (await this.evaluate(`Boolean(${expression})`)) {
        return;
      }
      await sleep(200);
    }
    throw new Error(`the editor did not show ${what}`);
  }

  async key(key: string, code: number, modifiers = 0): Promise<void> {
    const params = { key, code: key, windowsVirtualKeyCode: code, modifiers };
    await this.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...params });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...params });
  }

  /** Runs a command of the editor by its title. */
  async command(title: string): Promise<void> {
    await this.key("F1", 112);
    await this.until(INPUT, "the list of commands");
    await this.send("Input.insertText", { text: title });
    const first = `document.querySelector(".quick-input-list .monaco-list-row.focused")`;
    await this.until(`${first}?.textContent.includes(${JSON.stringify(title)})`, title);
    await this.key("Enter", 13);
    await this.until(`!${INPUT} || !${first}?.textContent.includes(${JSON.stringify(title)})`, "the end of the list");
  }

  /** Opens a file of the workspace. */
  async open(file: string): Promise<void> {
    await this.command("Focus on Files Explorer");
    await this.click(`.explorer-folders-view .monaco-list-row[aria-label^=${JSON.stringify(file)}]`, 2);
    await this.until(`document.querySelector(".tab.active")?.textContent.includes(${JSON.stringify(file)})`, file);
  }

  /** Clicks on what a selector finds, once or several times. */
  async click(selector: string, times = 1): Promise<void> {
    await this.until(`document.querySelector(${JSON.stringify(selector)})?.offsetParent`, selector);
    const find = `(({ x, y, width, height }) => [x + width / 2, y + height / 2])(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`;
    const [x, y] = (await this.evaluate(find)) as [number, number];
    for (let clickCount = 1; clickCount <= times; clickCount++) {
      for (const type of ["mousePressed", "mouseReleased"]) {
        await this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount });
      }
    }
  }

  async picture(file: string): Promise<void> {
    const { data } = (await this.send("Page.captureScreenshot", { format: "png" })) as { data: string };
    writeFileSync(file, Buffer.from(data, "base64"));
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

async function main([server, vsix, workspace, pictures]: string[]): Promise<void> {
  if (!server || !vsix || !workspace || !pictures) {
    throw new Error("usage: picture.js SERVER VSIX WORKSPACE DIRECTORY");
  }
  rmSync(path.join(pictures, "failed.png"), { force: true });
  const place = mkdtempSync(path.join(tmpdir(), "rocov-editor-"));
  const options = ["--user-data-dir", path.join(place, "user"), "--extensions-dir", path.join(place, "extensions")];
  const port = await freePort();
  mkdirSync(pictures, { recursive: true });
  for (const [theme, name] of [["Default Light Modern", "light"], ["Default Dark Modern", "dark"]] as const) {
    mkdirSync(path.join(place, "user/User"), { recursive: true });
    const settings = {
      "rocov.command": process.env["ROCOV"] ?? "rocov",
      "security.workspace.trust.enabled": false,
      "workbench.colorTheme": theme,
      "workbench.startupEditor": "none",
      "workbench.secondarySideBar.defaultVisibility": "hidden",
      "git.enabled": false,
    };
    writeFileSync(path.join(place, "user/User/settings.json"), JSON.stringify(settings));
    if (name === "light") {
      execFileSync(process.execPath, [server, ...options, "--install-extension", vsix]);
    }
    const address = `127.0.0.1:${port}`;
    const flags = ["--auth", "none", "--bind-addr", address, "--disable-telemetry", "--disable-update-check"];
    const editor = spawn(process.execPath, [server, ...options, ...flags], { stdio: ["ignore", "inherit", "inherit"] });
    const size = "--window-size=1400,900";
    const chromium = spawn(
      "chromium",
      ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe", size, `--user-data-dir=${place}/${name}`],
      { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
    );
    const browser = new Browser(chromium);
    try {
      let isUp = false;
      for (let turn = 0; !isUp && turn < 1000; turn++) {
        isUp = await fetch(`http://${address}/healthz`).then((reply) => reply.ok, () => false);
        await sleep(200);
      }
      const url = `http://${address}/?folder=${workspace}`;
      const { targetId } = await browser.send("Target.createTarget", { url });
      const { sessionId } = (await browser.send("Target.attachToTarget", { targetId, flatten: true })) as { sessionId: string };
      browser.session = sessionId;
      await browser.until(`document.querySelector("#rocov\\\\.rocov\\\\.rocov\\\\.coverage, [id*='rocov']")`, "rocov in the status bar");
      await browser.command("Load Coverage");
      await browser.until(`document.querySelector(".statusbar")?.textContent.includes("%")`, "the figures");
      await browser.open("statistics.hip");
      await browser.until(`document.querySelector(".coverage-deco-gutter, .coverage-deco-inline")`, "the lines that ran");
      await sleep(1000);
      await browser.picture(path.join(pictures, `${name}.png`));
      await browser.command("Toggle Inline Coverage");
      await sleep(1500);
      await browser.picture(path.join(pictures, `${name}-inline.png`));
      await browser.command("Focus on Test Coverage View");
      await browser.command("Go to Line/Column");
      await browser.send("Input.insertText", { text: "20" });
      await browser.key("Enter", 13);
      await browser.command("Which tests reach this line");
      await sleep(2500);
      await browser.picture(path.join(pictures, `${name}-which.png`));
      await browser.key("Escape", 27);
      await browser.open("scale.hip");
      await browser.click(`.editor-actions .action-label[aria-label*="Filter Coverage"]`);
      await browser.until(INPUT, "the list of tests");
      await browser.send("Input.insertText", { text: "full_blocks" });
      await sleep(1000);
      await browser.key("Enter", 13);
      await sleep(2500);
      await browser.picture(path.join(pictures, `${name}-test.png`));
    } catch (error) {
      await browser.picture(path.join(pictures, "failed.png"));
      throw error;
    } finally {
      chromium.kill();
      editor.kill();
      await sleep(1000);
    }
  }
  rmSync(place, { recursive: true, force: true, maxRetries: 5 });
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});

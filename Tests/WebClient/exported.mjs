// The npm package as Scripts/export-npm makes it, of a repository that has the files of this checkout: the checkout's own may have uncommitted changes.
// As a program: node exported.mjs FOLDER  makes FOLDER/trunkline-VERSION.tgz.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const FILES = [
  "Sources/Client/WebClient", "Sources/Trunkline/CommandSupport/Version.swift", "Scripts/export-npm", "Scripts/changelog", "CHANGELOG.md", "LICENSE",
];
const TIME = "2026-01-02T03:04:05Z";
/** Neither the settings of this machine nor a repository around it. */
const plain = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_")));
const settings = {
  ...plain, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", GIT_AUTHOR_NAME: "test", GIT_AUTHOR_EMAIL: "test@example.com",
  GIT_COMMITTER_NAME: "test", GIT_COMMITTER_EMAIL: "test@example.com", GIT_AUTHOR_DATE: TIME, GIT_COMMITTER_DATE: TIME,
};

export class Repository {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "export-npm-"));
    for (const name of FILES) {
      mkdirSync(dirname(join(this.folder, name)), { recursive: true });
      cpSync(join(root, name), join(this.folder, name), { recursive: true });
    }
    this.git("init", "-q");
    this.commit();
  }

  git(...words) {
    const { status, stdout, stderr, error } = spawnSync("git", words, { cwd: this.folder, encoding: "utf8", env: settings });
    if (status !== 0) throw new Error(`git ${words[0]}: ${error ?? stderr}`);
    return stdout.trim();
  }
  commit() {
    this.git("add", "-A");
    this.git("commit", "-qm", "export");
  }
  /** Where a file of the repository is. */
  at(name) { return join(this.folder, name); }

  /** Runs Scripts/export-npm with these arguments, in another folder than the repository's. */
  export(words, environment = {}) {
    const { status, stdout, stderr, error } = spawnSync(
      process.env.TRUNKLINE_PYTHON || "/usr/bin/python3", [this.at("Scripts/export-npm"), ...words],
      { cwd: tmpdir(), encoding: "utf8", env: { ...settings, ...environment } });
    if (error) throw error;
    return { status, out: stdout.trim(), error: stderr.trim() };
  }
  remove() { rmSync(this.folder, { recursive: true, force: true }); }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const repository = new Repository();
  try {
    const { status, out, error } = repository.export(process.argv.slice(2));
    console.log(out + error);
    process.exitCode = status;
  } finally { repository.remove(); }
}

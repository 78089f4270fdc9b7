// The npm package that Scripts/export-npm makes: what package.json says is in it and nothing else, node finds each export, and it refuses in one line.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { Repository } from "./exported.mjs";

const TIME = Date.UTC(2026, 0, 2, 3, 4, 5) / 1_000;
const MANIFEST = "Sources/Client/WebClient/package.json";
const { version } = JSON.parse(readFileSync(new URL("../../" + MANIFEST, import.meta.url), "utf8"));
const NEXT = "99.0.0";
let repository, folder, entries, manifest, statement;

/** The entries of a USTAR file, in order. */
function untar(data) {
  const found = [];
  const text = (at, length) => data.toString("utf8", at, at + length).replace(/\0[^]*$/, "").trim();
  const number = (at, length) => parseInt(text(at, length), 8);
  for (let at = 0; data[at] !== 0;) {
    const size = number(at + 124, 12);
    found.push({
      name: text(at, 100), mode: number(at + 100, 8), user: number(at + 108, 8), group: number(at + 116, 8), time: number(at + 136, 12), type: text(at + 156, 1),
      owner: text(at + 265, 32), data: data.subarray(at + 512, at + 512 + size),
    });
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return found;
}
const tarball = (where) => readFileSync(join(where, `trunkline-${version}.tgz`));
/** Runs a module's text in the app's folder. */
function node(text) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", text], { cwd: join(folder, "app"), encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

before(() => {
  repository = new Repository();
  folder = mkdtempSync(join(tmpdir(), "package-"));
  const { status, out, error } = repository.export([folder]);
  assert.equal(status, 0, error);
  assert.match(out, /^export-npm: .*\.tgz, \d+ octets, of commit [0-9a-f]{12}$/);
  assert.ok(out.includes(join(folder, `trunkline-${version}.tgz`)), out);
  entries = untar(gunzipSync(tarball(folder)));
  for (const entry of entries) {
    const path = join(folder, "app/node_modules/trunkline", entry.name.slice("package/".length));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, entry.data);
  }
  manifest = JSON.parse(readFileSync(join(folder, "app/node_modules/trunkline/package.json"), "utf8"));
  statement = JSON.parse(readFileSync(join(folder, `trunkline-${version}.provenance.json`), "utf8"));
});
after(() => {
  repository?.remove();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

test("it has the committed files that package.json names, the licence, the page and the changelog, and no test", () => {
  const sources = readdirSync(repository.at("Sources/Client/WebClient")).filter((name) => name.endsWith(".js") || name === "trunkline.d.ts");
  const expected = [...sources, "package.json", "README.md", "LICENSE", "CHANGELOG.md"].map((name) => "package/" + name).sort();
  assert.deepEqual(entries.map(({ name }) => name), expected);
  assert.ok(sources.length >= 15 && !entries.some(({ name }) => /test|fakes|\.mjs|\.swift/.test(name.replace("test-call.js", ""))));
  for (const { name, data } of entries) {
    const source = repository.at(name === "package/LICENSE" ? "LICENSE" : name.replace("package", "Sources/Client/WebClient"));
    if (!/package\.json|CHANGELOG/.test(name)) assert.ok(data.equals(readFileSync(source)), name);
  }
});

test("times are the commit's, owners root, and a second run gives the same octets", () => {
  for (const entry of entries) {
    const { mode, user, group, time, type, owner } = entry;
    assert.deepEqual({ mode, user, group, time, type, owner }, { mode: 0o644, user: 0, group: 0, time: TIME, type: "0", owner: "" }, entry.name);
  }
  const again = mkdtempSync(join(tmpdir(), "package-"));
  try {
    assert.equal(repository.export([join(again, "new/folder")]).status, 0);
    for (const name of readdirSync(folder).filter((name) => name.startsWith("trunkline-")))
      assert.ok(readFileSync(join(folder, name)).equals(readFileSync(join(again, "new/folder", name))), name);
  } finally { rmSync(again, { recursive: true }); }
});

test("package.json has the commit beside what the committed one has", () => {
  const committed = JSON.parse(readFileSync(repository.at(MANIFEST), "utf8"));
  assert.deepEqual(manifest, { ...committed, gitHead: repository.git("rev-parse", "HEAD") });
  assert.equal(manifest.license, "Apache-2.0");
  assert.equal(manifest.repository.directory, "Sources/Client/WebClient");
  // a bundler must not drop `import "trunkline/service-worker.js"`, which adds listeners
  assert.deepEqual(manifest.sideEffects, ["./service-worker.js"]);
});

test("node finds every export, no other file, and imports the package without a page", () => {
  const names = Object.keys(manifest.exports).map((name) => name.replace(/^\./, "trunkline"));
  const required = 'const { createRequire } = await import("node:module"), required = createRequire(process.cwd() + "/app.js");';
  const paths = node(`${required} for (const name of ${JSON.stringify(names)}) console.log(required.resolve(name))`).split("\n");
  assert.deepEqual(paths.map((path) => path.split("/node_modules/")[1]), ["trunkline.js", "service-worker.js", "package.json"].map((name) => "trunkline/" + name));
  for (const path of paths) assert.ok(existsSync(path), path);
  const exported = node('console.log(Object.keys(await import("trunkline")).sort().join())');
  assert.equal(exported, "Call,Phone,PhoneError,claims,readPush,reasonText");
  assert.equal(node('try { await import("trunkline/call.js") } catch (error) { console.log(error.code) }'), "ERR_PACKAGE_PATH_NOT_EXPORTED");
  assert.equal(node(`${required} console.log(required("trunkline/package.json").version)`), version);
  for (const path of [manifest.types, manifest.exports["."].types]) assert.ok(existsSync(join(folder, "app/node_modules/trunkline", path)), path);
});

test("the changelog is the web client's part", () => {
  const text = readFileSync(join(folder, "app/node_modules/trunkline/CHANGELOG.md"), "utf8");
  assert.match(text, /^# Changelog\n\n## \d[^\n]*\n\n- /);
  assert.ok(!/^###/m.test(text) && !/\]\((?!https:)/.test(text), "sections of other packages, or links out of the package");
  const all = readFileSync(repository.at("CHANGELOG.md"), "utf8");
  const [, own] = /^### Web client\n\n([^]*?)(?=\n##|$(?![^]))/m.exec(all);
  assert.equal(text.match(/^- /gm).length, own.match(/^- /gm).length);
});

test("the statement names the package, its digest, the commit and the entry point", () => {
  const commit = repository.git("rev-parse", "HEAD"), source = "git+https://git.example.com/trunkline.git";
  assert.equal(statement._type, "https://in-toto.io/Statement/v1");
  assert.equal(statement.predicateType, "https://slsa.dev/provenance/v1");
  const sha512 = createHash("sha512").update(tarball(folder)).digest("hex");
  assert.deepEqual(statement.subject, [{ name: `pkg:npm/trunkline@${version}`, digest: { sha512 } }]);
  const { buildDefinition, runDetails } = statement.predicate;
  assert.deepEqual(buildDefinition.externalParameters, { source, commit, entryPoint: "Scripts/export-npm", directory: "Sources/Client/WebClient" });
  assert.deepEqual(buildDefinition.resolvedDependencies, [{ uri: source, digest: { gitCommit: commit } }]);
  assert.ok(new URL(buildDefinition.buildType) && new URL(runDetails.builder.id));
});

test("--repository and --builder name those of the team", () => {
  const other = mkdtempSync(join(tmpdir(), "package-"));
  try {
    const words = ["--repository", "https://git.example.org/team/phone.git", "--builder", "https://ci.example.org/runner", other];
    assert.equal(repository.export(words).status, 0);
    const found = untar(gunzipSync(tarball(other))).find(({ name }) => name === "package/package.json");
    assert.equal(JSON.parse(found.data).repository.url, "git+https://git.example.org/team/phone.git");
    const { predicate } = JSON.parse(readFileSync(join(other, `trunkline-${version}.provenance.json`), "utf8"));
    assert.equal(predicate.buildDefinition.resolvedDependencies[0].uri, "git+https://git.example.org/team/phone.git");
    assert.equal(predicate.runDetails.builder.id, "https://ci.example.org/runner");
  } finally { rmSync(other, { recursive: true }); }
});

test("npm packs the same files of the unpacked package", { skip: spawnSync("npm", ["--version"]).status !== 0 && "no npm" }, () => {
  const environment = { ...process.env, npm_config_cache: join(folder, "cache"), npm_config_update_notifier: "false" };
  const { stdout, stderr } = spawnSync(
    "npm", ["pack", "--dry-run", "--json", "--offline"], { cwd: join(folder, "app/node_modules/trunkline"), encoding: "utf8", env: environment });
  assert.ok(stdout, stderr);
  assert.deepEqual(JSON.parse(stdout)[0].files.map(({ path }) => "package/" + path).sort(), entries.map(({ name }) => name));
});

const hasEsbuild = spawnSync("esbuild", ["--version"]).status === 0;
test("a bundler keeps the worker's listeners, and what is loaded on request in files of its own", { skip: !hasEsbuild && "no esbuild" }, () => {
  const app = join(folder, "app");
  writeFileSync(join(app, "worker.js"), 'import "trunkline/service-worker.js";\n');
  writeFileSync(join(app, "app.js"), 'import { Phone } from "trunkline";\nconsole.log(Phone);\n');
  const bundle = (...words) => {
    const { status, stderr } = spawnSync("esbuild", ["--bundle", "--minify", "--log-level=warning", ...words], { cwd: app, encoding: "utf8" });
    assert.deepEqual([status, stderr], [0, ""]);
  };
  bundle("--outfile=web/worker.js", "worker.js");
  assert.match(readFileSync(join(app, "web/worker.js"), "utf8"), /notificationclick/);
  bundle("--splitting", "--format=esm", "--outdir=web", "app.js");
  const files = readdirSync(join(app, "web"));
  for (const part of ["preflight", "push"]) assert.equal(files.filter((name) => name.startsWith(part + "-")).length, 1, files.join());
});

test("it refuses in one line what cannot be exported", () => {
  const other = new Repository(), out = join(other.folder, "out");
  const refusal = (words = [out], environment = {}) => {
    const { status, error } = other.export(words, environment);
    assert.equal(status, 1, error);
    assert.equal(error.split("\n").length, 1, error);
    assert.ok(!existsSync(out), "something was written");
    return error;
  };
  /** The refusal after a change, which is undone. */
  const after = (name, change, isCommitted = true) => {
    change(other.at(name));
    if (isCommitted) other.commit();
    const text = refusal();
    if (isCommitted) other.git("reset", "-q", "--hard", "HEAD~1");
    else {
      other.git("reset", "-q", "--hard");
      other.git("clean", "-qfd");
    }
    return text;
  };
  const replace = (old, by) => (path) => {
    const text = readFileSync(path, "utf8");
    assert.ok(text.includes(old));
    writeFileSync(path, text.replace(old, by));
  };
  try {
    for (const name of ["Sources/Client/WebClient/call.js", "CHANGELOG.md", "Scripts/export-npm"])
      assert.equal(after(name, (path) => appendFileSync(path, "\n"), false), `export-npm: ${name} has uncommitted changes: commit or stash them`);
    assert.match(after("Sources/Client/WebClient/new.js", (path) => writeFileSync(path, ""), false), /WebClient\/new\.js has uncommitted changes/);
    assert.match(
      after(MANIFEST, replace(`"version": "${version}"`, `"version": "${NEXT}"`)),
      /package\.json has version 99\.0\.0, .*Version\.swift has \d[^ ]*: they are released together$/);
    assert.equal(after("CHANGELOG.md", replace("## " + version, "## " + NEXT)), `export-npm: CHANGELOG.md has no release ${version}: add its heading`);
    assert.match(after("CHANGELOG.md", replace("| Web client |", "| Web |")), /there is no package "Web client"/);
    assert.match(after(MANIFEST, replace('"trunkline.d.ts", ', "")), /names \.\/trunkline\.d\.ts, which is not packed/);
    assert.match(after(MANIFEST, replace('"*.js"', '"*.js", "*.cjs"')), /"\*\.cjs" in files of .* matches no file$/);
    assert.match(refusal([], { PATH: "/nowhere" }), /^export-npm: there is no git: /);
    assert.match(refusal(["--repository", "phone", out]), /--repository requires a URL/);
    assert.match(refusal(["--quick"]), /unknown argument "--quick"/);
    assert.match(refusal([other.at("LICENSE")]), /cannot write into .*LICENSE/);
    rmSync(other.at(".git"), { recursive: true });
    assert.equal(refusal(), "export-npm: this folder is not a git checkout: the package is made of a commit");
  } finally { other.remove(); }
});

test("--help has examples, and writes nothing", () => {
  const { status, out } = repository.export(["--help"]);
  assert.equal(status, 0);
  assert.match(out, /Scripts\/export-npm FOLDER/);
  assert.equal(repository.git("status", "--porcelain"), "");
});

// The token samples of docs/integrate/users.md run as they stand and sign the same claims; Python's where TRUNKLINE_PYTHON or .venv has PyJWT.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = readFileSync(join(root, "docs/integrate/users.md"), "utf8");
const sample = (kind) => new RegExp("```" + kind + "\n([^]*?)```").exec(page)[1];
const key = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/** Runs a program beside its key file and reads the token that it prints. */
function signed(command, name, text) {
  const folder = mkdtempSync(join(tmpdir(), "token-"));
  try {
    writeFileSync(join(folder, "jwt.key"), key + "\n");
    writeFileSync(join(folder, name), text);
    const { status, stdout, stderr } = spawnSync(command, [name], { cwd: folder, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    const [head, body, signature] = stdout.trim().split(".");
    assert.equal(signature, createHmac("sha256", key).update(`${head}.${body}`).digest("base64url"));
    const [header, { iat, exp, ...claims }] = [head, body].map((part) => JSON.parse(Buffer.from(part, "base64url")));
    assert.deepEqual(header, { alg: "HS256", typ: "JWT" });
    assert.equal(exp, Math.floor(iat) + 3600);
    return claims;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
const expected = { sub: "alice", dev: "phone", aud: "trunkline", trunkline: { numbers: ["+15551230001"], name: "Alice" } };

test("the sample for Node signs a token with the key as it stands in the file", () => {
  assert.deepEqual(signed(process.execPath, "token.mjs", sample("js") + '\nconsole.log(phoneToken("alice", "phone"));\n'), expected);
});

const python = process.env.TRUNKLINE_PYTHON ?? join(root, ".venv/bin/python");
const hasPyJWT = existsSync(python) && spawnSync(python, ["-c", "import jwt"]).status === 0;
test("the sample for Python signs the same", { skip: !hasPyJWT && "no Python with PyJWT" }, () => {
  assert.deepEqual(signed(python, "phone_token.py", sample("python") + '\nprint(phone_token("alice", "phone"))\n'), expected);
});

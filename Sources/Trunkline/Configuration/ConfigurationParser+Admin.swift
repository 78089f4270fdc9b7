import Bytes
import JSONWebToken

extension ConfigurationParser {
  /// `admin: { tokens: [ { name: crm, token_file: FILE, scopes: [ read, calls ], per_second: 20 } ] }`
  func admin(_ top: Section) -> Settings.Admin {
    var out = Settings.Admin()
    for (node, path) in top.section("admin").items("tokens", limit: Limits.apiTokens) {
      guard let token = apiToken(Section(node, path, self)) else { continue }
      if out.tokens.contains(where: { $0.name == token.name }) { problem(path, "another token is named \(token.name)") }
      if let other = out.tokens.first(where: { other in token.secrets.contains { other.secrets.contains($0) } }) {
        problem(path + ".token_file", "has a token of \(other.name)")
      }
      out.tokens.append(token)
    }
    return out
  }

  private func apiToken(_ row: Section) -> APIToken? {
    let name = row.required("name")
    if !row.has("token_file") { problem(row.path, "token_file is missing") }
    if !row.has("scopes") { problem(row.path, "scopes is missing: what this token may do") }
    let names = APIScope.allCases.map(\.rawValue)
    let scopes = row.list(
      "scopes", limit: names.count, names.dropLast().joined(separator: ", ") + " or " + names[names.count - 1]
    ) {
      APIScope(rawValue: $0)
    }
    let rate = row.integer("per_second", in: Limits.apiRate, default: Settings.Admin.requestsPerSecond)
    guard let name, let bytes = row.secret("token_file") else { return nil }
    let lines = bytes.split { $0 == 10 || $0 == 13 }.map(Array.init)
    let fits = lines.allSatisfy { line in
      Limits.apiTokenBytes.contains(line.count) && line.allSatisfy { $0 > 32 && $0 < 127 }
    }
    guard fits, lines.count <= 2 else {
      problem(
        row.path("token_file"),
        "needs a line of \(Limits.apiTokenBytes.lowerBound) to \(Limits.apiTokenBytes.upperBound) visible characters, or two while the "
          + "token is changed; make one with: head -c 32 /dev/urandom | base64")
      return nil
    }
    return APIToken(name: name, secrets: lines.map { Redacted($0) }, scopes: Set(scopes), perSecond: rate)
  }
}

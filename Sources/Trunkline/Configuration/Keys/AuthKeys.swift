import JSONWebToken
import TrunklineBytes

extension ConfigurationKeys {
  static let auth = KeyTable<Settings.Auth>(
    .init(), .atSIGHUP, about: "Open sessions are not checked again.",
    [
      .section("jwt", jwt, \.self, default: .required(), "How login tokens are checked."),
      .list(
        "origins", \.origins, .text("origin"), limit: 1_000, default: .value("[]"),
        expected: "an origin such as https://phone.example.com",
        "Origins of web pages that may connect, such as `https://phone.example.com`. Without one: the gateway's own web phone."
      ) { text in
        let isWeb = text.hasPrefix("https://") || text.hasPrefix("http://")
        return isWeb && !text.dropFirst(8).contains("/") ? text : nil
      },
    ])

  private static let jwt = KeyTable<Settings.Auth>(
    .init(), .atSIGHUP, about: "Needs `key_file`, `jwks_file` or `jwks_url`.",
    [
      .choice("algorithm", \.algorithm, "The only signature algorithm that is accepted."),
      .init(
        "key_file", .secretFile("the secret itself, or for RS256 and ES256 a PEM key"),
        "The key that your server signs login tokens with; for HS256 32 bytes or more, and base64 is not decoded."
      ) { field, out in
        if let bytes = field.fileContent() { accept(.keyFile(Redacted(bytes)), field, &out) }
      },
      .init("jwks_file", .file("JSON Web Key Set"), "Public keys, chosen by `kid`; not with HS256.") { field, out in
        if let bytes = field.fileContent() { accept(.keySetFile(Redacted(bytes)), field, &out) }
      },
      // The URL is not fetched here: a gateway must start, and its file be checked, while the server is unreachable.
      .init(
        "jwks_url", .text("URL"), default: .none("keys are in a file"),
        "Where the issuer publishes its keys: `https:`, or `http:` of this machine; not with HS256. See [users](../integrate/users.md#keys-by-url)."
      ) { field, out in
        let expected = "a URL such as https://id.example.com/.well-known/jwks.json (http: for this machine only)"
        guard let url = field.value(expected, serverURL) else { return }
        if out.algorithm == .HS256 {
          field.problem("HS256 needs key_file: give algorithm: RS256 or ES256, to match the keys of the URL")
        }
        out.key = .keySetURL(url, authorities: nil)
      },
      .init(
        "jwks_ca", .file("PEM certificates"), default: .none("the system's authorities"),
        "The CAs of the certificate of `jwks_url`."
      ) { field, out in
        guard let file = field.readableFile(), case .keySetURL(let url, _) = out.key else { return }
        out.key = .keySetURL(url, authorities: file)
      },
      .string("audience", \.audience, "What `aud` of a login token must be."),
    ], rules: [oneSourceOfKeys])

  /// The file is tried with the algorithm.
  private static func accept(_ key: Settings.Auth.Key, _ field: Field, _ out: inout Settings.Auth) {
    out.key = key
    do {
      _ = try out.keys()
    } catch {
      field.problem("\(field.parser.resolve(field.text ?? "")): \(error)")
    }
  }

  @Sendable private static func oneSourceOfKeys(_ jwt: Section, _ out: inout Settings.Auth) {
    let given = ["key_file", "jwks_file", "jwks_url"].filter(jwt.has)
    if given.count > 1 { jwt.problem("\(given.joined(separator: " and ")) exclude each other") }
    if given.isEmpty {
      jwt.problem(out.algorithm == .HS256 ? "key_file is missing" : "key_file, jwks_file or jwks_url is missing")
    }
    if jwt.has("jwks_ca"), !jwt.has("jwks_url") { jwt["jwks_ca"].problem("goes with jwks_url") }
  }
}

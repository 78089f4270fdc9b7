import Foundation
import JSONWebToken
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession

/// `admin: { tokens: [ { name: crm, token_file: FILE, scopes: [ read, calls ], per_second: 20 } ] }`
extension ConfigurationKeys {
  static let admin = KeyTable<Settings.Admin>(
    .init(), .atSIGHUP,
    [
      .sections(
        "tokens", apiToken, \.tokens, limit: Limits.apiTokens,
        "Tokens with a part of the rights of the `listen.admin` token; if there is one, every request needs a token."),
      .init(
        "play_folder", .text("path of a folder"), default: .none("nothing can be played"),
        "Its `.wav` files, of \(Limits.audioBytes >> 20) MiB at most, are what programs may play in calls, by name; read at start and at SIGHUP."
      ) { field, out in
        out.recordings = recordings(field)
      },
    ], rules: [tokensDiffer])

  private static let apiToken = KeyTable<APIToken>(
    .init(name: "", secrets: [], scopes: [], perSecond: Settings.Admin.requestsPerSecond), .atSIGHUP,
    about: "To change a token, add the new one below the old one, notify its users, remove the old one.",
    [
      .requiredText("name", \.name, kind: "name", "The owner's name; idempotency keys are each token's own."),
      .init(
        "token_file", .secretFile("one line, or two"), default: .required(), "The bearer token; of two lines both are good."
      ) { field, out in
        out.secrets = tokens(field)
      },
      .init(
        "scopes", .list(.oneOf(APIScope.self), limit: APIScope.allCases.count),
        default: .required(hint: "what this token may do"),
        "`read`: every GET but traces. `calls`: make calls and act on them. `users`: devices and test pushes. `admin`: the rest."
      ) { field, out in
        let names = APIScope.allCases.map(\.rawValue)
        out.scopes = Set(field.list(limit: names.count, orList(names)) { APIScope(rawValue: $0) })
      },
      .limit(
        "per_second", \.perSecond, Limits.apiRate,
        "Requests in a second, of which so many may come at once; more are refused with 429."),
    ])

  @Sendable private static func tokensDiffer(_ admin: Section, _ out: inout Settings.Admin) {
    for (index, token) in out.tokens.enumerated() {
      let path = "\(admin["tokens"].path)[\(index)]"
      if !token.name.isEmpty, out.tokens[..<index].contains(where: { $0.name == token.name }) {
        admin.parser.problem(at: path, "another token is named \(token.name)")
      }
      let other = out.tokens[..<index].first { other in token.secrets.contains { other.secrets.contains($0) } }
      if let other { admin.parser.problem(at: path + ".token_file", "has a token of \(other.name)") }
    }
  }

  private static func tokens(_ field: Field) -> [Redacted<[UInt8]>] {
    guard let bytes = field.secret() else { return [] }
    let lines = bytes.split { $0 == 10 || $0 == 13 }.map(Array.init)
    let fits = lines.allSatisfy { line in
      Limits.apiTokenBytes.contains(line.count) && line.allSatisfy { $0 > 32 && $0 < 127 }
    }
    guard fits, lines.count <= 2 else {
      field.problem(
        "needs a line of \(Limits.apiTokenBytes.lowerBound) to \(Limits.apiTokenBytes.upperBound) visible characters, or two while the "
          + "token is changed; make one with: head -c 32 /dev/urandom | base64")
      return []
    }
    return lines.map { Redacted($0) }
  }

  /// Every `.wav` of the folder; read now, so that a call waits for no disk and a name leads to no other file.
  private static func recordings(_ field: Field) -> [String: Announcement] {
    guard let folder = field.string().map(field.parser.resolve) else { return [:] }
    guard let all = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
      field.problem("cannot read the folder \(folder)")
      return [:]
    }
    let names = all.filter { $0.hasSuffix(".wav") }.sorted()
    if names.count > Limits.playedFiles {
      field.problem("\(folder) has \(names.count) WAV files, more than the limit of \(Limits.playedFiles)")
    }
    var out: [String: Announcement] = [:]
    for name in names.prefix(Limits.playedFiles) {
      let size = (try? FileManager.default.attributesOfItem(atPath: folder + "/" + name)[.size]) as? Int ?? 0
      guard size <= Limits.audioBytes, let bytes = FileManager.default.contents(atPath: folder + "/" + name) else {
        field.problem("\(name): cannot be read, or has more than \(Limits.audioBytes >> 20) MiB")
        continue
      }
      do throws(WAVFile.FormatError) {
        out[name] = Announcement(try WAVFile.recording(of: [UInt8](bytes)))
      } catch {
        field.problem("\(name): \(error)")
      }
    }
    return out
  }
}

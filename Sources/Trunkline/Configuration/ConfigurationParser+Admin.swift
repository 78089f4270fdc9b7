import Foundation
import JSONWebToken
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession

extension ConfigurationParser {
  /// `admin: { tokens: [ { name: crm, token_file: FILE, scopes: [ read, calls ], per_second: 20 } ] }`
  func admin(_ top: Section) -> Settings.Admin {
    var out = Settings.Admin()
    let section = top.section("admin")
    out.recordings = recordings(section)
    for (node, path) in section.items("tokens", limit: Limits.apiTokens) {
      guard let token = apiToken(Section(node, path, self)) else { continue }
      if out.tokens.contains(where: { $0.name == token.name }) { problem(path, "another token is named \(token.name)") }
      if let other = out.tokens.first(where: { other in token.secrets.contains { other.secrets.contains($0) } }) {
        problem(path + ".token_file", "has a token of \(other.name)")
      }
      out.tokens.append(token)
    }
    return out
  }

  /// Every `.wav` of `play_folder`; read now, so that a call waits for no disk and a name leads to no other file.
  private func recordings(_ section: Section) -> [String: Announcement] {
    guard let folder = section.string("play_folder").map(resolve) else { return [:] }
    let path = section.path("play_folder")
    guard let all = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
      problem(path, "cannot read the folder \(folder)")
      return [:]
    }
    let names = all.filter { $0.hasSuffix(".wav") }.sorted()
    if names.count > Limits.playedFiles {
      problem(path, "\(folder) has \(names.count) WAV files, more than the limit of \(Limits.playedFiles)")
    }
    var out: [String: Announcement] = [:]
    for name in names.prefix(Limits.playedFiles) {
      let size = (try? FileManager.default.attributesOfItem(atPath: folder + "/" + name)[.size]) as? Int ?? 0
      guard size <= Limits.audioBytes, let bytes = FileManager.default.contents(atPath: folder + "/" + name) else {
        problem(path, "\(name): cannot be read, or has more than \(Limits.audioBytes >> 20) MiB")
        continue
      }
      do throws(WAVFile.FormatError) {
        out[name] = Announcement(try WAVFile.recording(of: [UInt8](bytes)))
      } catch {
        problem(path, "\(name): \(error)")
      }
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

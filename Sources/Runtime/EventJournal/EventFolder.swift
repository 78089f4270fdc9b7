import Foundation

/// The files of a journal: `epoch`, and segments that are named for their first position, `00000000000000000001.events`.
struct EventFolder {
  struct Segment: Equatable {
    var first: UInt64
    var path: String
    var bytes: Int
    /// Milliseconds since 1970 of its last change.
    var changed: Int64
  }
  static let suffix = ".events"
  let path: String

  func path(of first: UInt64) -> String {
    let digits = String(first)
    return "\(path)/\(String(repeating: "0", count: max(0, 20 - digits.count)))\(digits)\(Self.suffix)"
  }

  /// The oldest first.
  func segments() -> [Segment] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return names.compactMap { name -> Segment? in
      guard name.hasSuffix(Self.suffix), let first = UInt64(name.dropLast(Self.suffix.count)) else { return nil }
      var status = stat()
      let path = "\(path)/\(name)"
      guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
      return Segment(
        first: first, path: path, bytes: Int(status.st_size),
        changed: Int64(status.st_mtim.tv_sec) * 1_000 + Int64(status.st_mtim.tv_nsec) / 1_000_000)
    }.sorted { $0.first < $1.first }
  }

  /// Eight hexadecimal digits; nil: there is no journal.
  func epoch() -> String? {
    guard let data = FileManager.default.contents(atPath: path + "/epoch") else { return nil }
    let text = String(decoding: data.prefix(16), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    return text.utf8.count == 8 && text.allSatisfy(\.isHexDigit) ? text : nil
  }
}

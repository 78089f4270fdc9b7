import Foundation

/// A file that gets the trace's lines, so that they survive the process. Before the first unlock it may not open yet: lines wait.
final class TraceFile: @unchecked Sendable {
  // Unchecked: used within the trace's lock only.
  /// The size at which the file is full; an hour of calls fills a tenth.
  static let limit = 8 << 20
  private static let waitingLimit = 2_000
  private let path: String
  private var handle: FileHandle?
  private var size = 0
  private var waiting: [String] = []
  private var isFull = false

  init(_ path: String) { self.path = path }

  deinit { try? handle?.close() }

  func add(_ line: String) {
    guard !isFull else { return }
    if waiting.count < Self.waitingLimit { waiting.append(line) }
    guard let handle = handle ?? open() else { return }
    let data = Data(waiting.map { $0 + "\n" }.joined().utf8)
    waiting = []
    guard size + data.count <= Self.limit, (try? handle.write(contentsOf: data)) != nil else { return isFull = true }
    size += data.count
  }

  private func open() -> FileHandle? {
    if !FileManager.default.fileExists(atPath: path) {
      _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
    }
    guard let opened = FileHandle(forWritingAtPath: path), let end = try? opened.seekToEnd() else { return nil }
    handle = opened
    size = Int(clamping: end)
    return opened
  }
}

import Foundation
import Synchronization

/// `push_peer.py` while a test runs: its port, its certificate, and what it was asked.
final class Peer {
  let port: UInt16
  let folder: URL
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()
  private let lines = Mutex<[String]>([])

  /// The interpreter with the package `h2`: TRUNKLINE_PYTHON, else the product's own environment.
  static let python: String? = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
    let path = ProcessInfo.processInfo.environment["TRUNKLINE_PYTHON"] ?? root.appendingPathComponent(".venv/bin/python").path
    return FileManager.default.isExecutableFile(atPath: path) ? path : nil
  }()

  init(_ script: String = "push_peer.py") throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-push-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let key = folder.appendingPathComponent("provider.pem")
    try TestKeys.p256.write(to: key, atomically: true, encoding: .utf8)
    guard let python = Self.python else { throw CocoaError(.fileNoSuchFile) }
    process.executableURL = URL(fileURLWithPath: python)
    process.arguments = [
      URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(script).path, folder.path, key.path,
    ]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    port = UInt16(Self.line(output.fileHandleForReading) ?? "") ?? 0
  }

  var certificate: String { folder.appendingPathComponent("cert.pem").path }

  /// Waits for the next request that the peer saw.
  func request() throws -> [String: Any] {
    let line = Self.line(output.fileHandleForReading) ?? ""
    return try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
  }

  /// Gives the peer a line of input and waits for its answer.
  func ask(_ line: String) throws -> String {
    try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    return Self.line(output.fileHandleForReading) ?? ""
  }

  func stop() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
    try? FileManager.default.removeItem(at: folder)
  }

  private static func line(_ file: FileHandle) -> String? {
    var bytes: [UInt8] = []
    while let byte = try? file.read(upToCount: 1)?.first, byte != 10 { bytes.append(byte) }
    return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
  }
}

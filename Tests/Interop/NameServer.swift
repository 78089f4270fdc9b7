import Foundation

/// A name server of one test, on loopback.
struct NameServer {
  let peer: Spawned
  let port: UInt16
  private let path: String

  /// `zone`: name → rows of "TTL TYPE VALUE".
  init(_ zone: [String: [String]], address: String = "127.0.0.1", port: UInt16, in folder: String) async throws {
    guard let python = Surroundings.python else { throw Spawned.Failure(description: Surroundings.missing ?? "") }
    self.port = port
    path = folder + "/zone-\(port).json"
    try JSONSerialization.data(withJSONObject: zone).write(to: URL(fileURLWithPath: path))
    peer = try Spawned(
      "dns-\(port)", python,
      ["-B", Surroundings.sources + "/peers/dns_server.py", "--address", address, "--port", "\(port)", "--zone", path],
      in: folder,
      environment: ["PYTHONUNBUFFERED": "1"])
    _ = try await peer.event("listening", within: 15)
  }

  /// `dead`, `broken` or `alive`.
  func become(_ mode: String) async throws {
    peer.type(mode)
    _ = try await peer.event("mode") { $0["mode"] as? String == mode }
  }

  func replace(_ zone: [String: [String]]) async throws {
    try JSONSerialization.data(withJSONObject: zone).write(to: URL(fileURLWithPath: path))
    peer.type("reload")
    _ = try await peer.event("mode") { $0["mode"] as? String == "reload" }
  }

  /// A folder for a server that has to listen before its gateway starts.
  static func folder() throws -> String {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("dns-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }
}

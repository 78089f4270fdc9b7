import Foundation

/// Settings and recents as files of JSON. What cannot be read is as if it had never been written.
struct ModelStore {
  static let longestRecents = 100
  let folder: URL

  func settings() -> DeviceSettings { read("settings.json") ?? DeviceSettings() }
  func recents() -> [RecentCall] { read("recents.json") ?? [] }
  func write(_ settings: DeviceSettings) { write(settings, "settings.json") }
  func write(_ recents: [RecentCall]) { write(recents, "recents.json") }

  private func read<Value: Decodable>(_ name: String) -> Value? {
    guard let data = try? Data(contentsOf: folder.appendingPathComponent(name)) else { return nil }
    return try? JSONDecoder().decode(Value.self, from: data)
  }

  private func write(_ value: some Encodable, _ name: String) {
    try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try? JSONEncoder().encode(value).write(to: folder.appendingPathComponent(name), options: .atomic)
  }
}

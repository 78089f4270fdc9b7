import CallFlow
import Configuration
import Store

extension Gateway {
  /// What `trunkline users import` left. Blocks.
  static func imported(_ settings: Settings, _ logs: Logs) throws -> NumberTable {
    let table = try ImportedNumbers.read(settings.numbers)
    if !table.isEmpty {
      logs.logger("trunkline").notice(
        "imported numbers", metadata: ["numbers": "\(table.count)", "users": "\(table.userCount)", "bytes": "\(table.bytes)"])
    }
    return table
  }

  /// Directories and histories. Nil in a cluster: each of its nodes would have another one. Blocks.
  static func directory(_ settings: Settings, _ logs: Logs) throws -> DirectoryService? {
    guard settings.cluster?.nodes == nil else { return nil }
    return try DirectoryService(path: settings.directory, history: settings.historySettings, logger: logs.logger("directory"))
  }
}

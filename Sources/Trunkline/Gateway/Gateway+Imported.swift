import CallFlow
import Configuration
import Logging
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
}

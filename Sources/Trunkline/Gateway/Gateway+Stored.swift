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

  /// Directories and histories, which nodes of a cluster share. Blocks.
  static func directory(_ settings: Settings, _ cluster: ClusterComponent?, _ logs: Logs) throws -> DirectoryService {
    let sharedStore = cluster.map { cluster in SharedStoreHandle(node: cluster.machine.incarnation) { cluster.ask($0, $1) } }
    let service = try DirectoryService(
      path: settings.directory, history: settings.historySettings, sharedStore: sharedStore, logger: logs.logger("directory"))
    cluster?.attach(service)
    return service
  }
}

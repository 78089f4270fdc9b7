import AppServer
import Configuration
import Logging
import TrunklinePlatform

extension Gateway {
  /// RTP and RTCP of the trunk leg; app legs share a socket for each media thread.
  static let descriptorsPerCall = 2

  /// What the process may open, and a warning if that is less than the configuration asks for.
  static func descriptors(_ settings: Settings, _ logger: Logger) -> DescriptorLimit {
    let limit = DescriptorLimit.raise(calls: settings.calls.bounds.calls * descriptorsPerCall)
    if limit.calls / descriptorsPerCall < settings.calls.bounds.calls || limit.apps < AppServer.mostConnections {
      logger.warning(
        "few file descriptors: raise the hard limit (systemd: LimitNOFILE, else ulimit -Hn)",
        metadata: [
          "limit": "\(limit.total)", "app_connections": "\(min(limit.apps, AppServer.mostConnections))",
          "calls": "\(min(settings.calls.bounds.calls, limit.calls / descriptorsPerCall))",
        ])
    }
    return limit
  }
}

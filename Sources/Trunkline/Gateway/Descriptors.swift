import AppServer
import Configuration
import Logging
import TrunklinePlatform

extension DescriptorLimit {
  /// RTP and RTCP of the trunk leg; app legs share a socket for each media thread.
  private static let perCall = 2

  /// What the process may open, and a warning if that is less than the configuration asks for.
  static func raise(for settings: Settings, _ logger: Logger) -> DescriptorLimit {
    let limit = raise(calls: settings.calls.bounds.calls * perCall)
    if limit.mostCalls < settings.calls.bounds.calls || limit.apps < AppServer.mostConnections {
      logger.warning(
        "few file descriptors: raise the hard limit (systemd: LimitNOFILE, else ulimit -Hn)",
        metadata: [
          "limit": "\(limit.total)", "app_connections": "\(min(limit.apps, AppServer.mostConnections))",
          "calls": "\(min(settings.calls.bounds.calls, limit.mostCalls))",
        ])
    }
    return limit
  }

  var mostCalls: Int { calls / Self.perCall }
}

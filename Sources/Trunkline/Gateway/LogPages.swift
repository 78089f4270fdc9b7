import AppServer
import Logging
import Telemetry

/// Log levels on the admin port, until the next start.
///
///     GET  /v1/log/levels                  {"levels":{"control":"info",…}}
///     POST /v1/log/levels/MODULE/LEVEL     from now on this module writes LEVEL and what is more severe
struct LogPages: Sendable {
  let levels: LogLevels

  func answer(_ request: AdminRequest, _ rest: [String]) -> AdminResponse {
    switch (request.method, rest.count) {
    case ("GET", 1) where rest[0] == "levels":
      struct Body: Encodable { var levels: [String: String] }
      return .json(200, Body(levels: levels.all.mapValues(\.rawValue)))
    case ("POST", 3) where rest[0] == "levels":
      guard let level = Logger.Level(rawValue: rest[2]) else {
        return .text(400, "no such level: " + Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))
      }
      guard levels.set(rest[1], level) else {
        return .text(404, "no such module: " + levels.all.keys.sorted().joined(separator: ", "))
      }
      return .text(200, "\(rest[1]) writes \(level) until the gateway restarts")
    default: return .text(405, "GET /v1/log/levels, POST /v1/log/levels/MODULE/LEVEL")
    }
  }
}

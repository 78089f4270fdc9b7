import AppServer
import Logging
import Telemetry

/// Log levels on the admin port, until the next start of the process.
///
///     GET  /v1/log/levels                  {"levels":{"control":"info",…}}
///     POST /v1/log/levels/MODULE/LEVEL     from now on this module writes LEVEL and more severe lines
struct LogHandlers: Sendable {
  let levels: LogLevels

  func list() -> AdminResponse {
    struct Body: Encodable { var levels: [String: String] }
    return .json(200, Body(levels: levels.all.mapValues(\.rawValue)))
  }

  func set(_ request: AdminRequest) -> AdminResponse {
    let module = request.argument("module")
    guard let level = Logger.Level(rawValue: request.argument("level")) else {
      return APIError(.badRequest, "no such level: " + Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")).response
    }
    guard levels.set(module, level) else {
      return APIError(.unknownModule, "no such module: " + levels.all.keys.sorted().joined(separator: ", ")).response
    }
    return .text(200, "\(module) writes \(level) until the gateway restarts")
  }
}

import AppSessions
import Synchronization
import TrunklinePlatform
import WebServer

/// The session machine's figures after the app thread's last step; read by any thread.
final class SessionFigures: Sendable {
  struct Values {
    var stats = SessionStats()
    var connected = 0
    var resumable = 0
    var waitingEvents = 0
  }

  private let published = Mutex(Values())
  private let sessionsLimit: Int
  private let connectionsLimit: Int

  init(_ settings: AppServer.Settings) {
    (sessionsLimit, connectionsLimit) = (settings.sessions.sessions, settings.connections)
  }

  func publish(_ values: Values) { published.withLock { $0 = values } }

  var sessionCount: Int { published.withLock { $0.connected + $0.resumable } }

  /// The metrics of the app port.
  func families(_ transport: HTTPServerMetrics) -> [MetricFamily] {
    traffic(transport) + logins
  }

  /// Sessions, their sockets and what these carry.
  private func traffic(_ transport: HTTPServerMetrics) -> [MetricFamily] {
    [
      MetricFamily(name: "trunkline_app_sessions", help: "App sessions by state.", kind: .gauge, labelNames: ["state"]) {
        [self] in
        let now = published.withLock { $0 }
        return [
          MetricSample(["connected"], .integer(Int64(now.connected))),
          MetricSample(["resumable"], .integer(Int64(now.resumable))),
        ]
      },
      .gauge("trunkline_app_sessions_limit", help: "App sessions in all; more are refused.") { [sessionsLimit] in
        Int64(sessionsLimit)
      },
      .gauge("trunkline_app_connections_limit", help: "Sockets of the app port in all; more are refused.") { [connectionsLimit] in
        Int64(connectionsLimit)
      },
      .gauge("trunkline_app_connections", help: "Sockets of the app port, HTTP included.", transport.connections),
      .gauge("trunkline_app_websockets", help: "WebSockets of the app port.", transport.webSockets),
      .gauge("trunkline_app_events_waiting", help: "Events that the control thread has not processed yet.") { [self] in
        Int64(published.withLock { $0.waitingEvents })
      },
      MetricFamily(
        name: "trunkline_app_messages_total", help: "Messages by direction.", kind: .counter, labelNames: ["direction"]
      ) {
        [self] in
        let stats = published.withLock { $0.stats }
        return [
          MetricSample(["received"], .integer(Int64(clamping: stats.messagesReceived))),
          MetricSample(["sent"], .integer(Int64(clamping: stats.messagesSent))),
        ]
      },
      .counter("trunkline_app_received_bytes_total", help: "Bytes of WebSocket messages received.", transport.bytesReceived),
      .counter("trunkline_app_sent_bytes_total", help: "Bytes of WebSocket messages and pages sent.", transport.bytesSent),
      .counter(
        "trunkline_app_control_frames_total", help: "WebSocket pings, pongs and fragments received.", transport.controlFrames),
      .counters("trunkline_app_closes_total", help: "Closed WebSockets by code and the side that closed.", transport.closes),
      .counters(
        "trunkline_app_connections_refused_total", help: "Sockets and upgrades refused.", label: "reason", transport.refused),
      .counters("trunkline_app_http_responses_total", help: "HTTP responses of the app port.", transport.requests),
    ]
  }

  /// Logins, resumed sessions, and messages and requests that were not handled as usual.
  private var logins: [MetricFamily] {
    func stat(_ name: String, help: String, _ read: @escaping @Sendable (SessionStats) -> UInt64) -> MetricFamily {
      MetricFamily(name: name, help: help, kind: .counter) { [self] in
        [MetricSample([], .integer(Int64(clamping: published.withLock { read($0.stats) })))]
      }
    }
    return [
      MetricFamily(
        name: "trunkline_app_hello_refused_total", help: "Logins refused by reason.", kind: .counter, labelNames: ["reason"]
      ) { [self] in
        let refusals = published.withLock { $0.stats.refusals }
        return SessionRefusal.allCases.map {
          MetricSample([$0.rawValue], .integer(Int64(clamping: refusals[$0, default: 0])))
        }
      },
      stat("trunkline_app_resumed_total", help: "Sessions resumed on a new socket.") { $0.resumed },
      stat("trunkline_app_continued_total", help: "Sessions that began with the resume token of one that is not here.") {
        $0.continued
      },
      stat("trunkline_app_duplicates_total", help: "Numbered messages seen before and dropped.") { $0.duplicates },
      stat("trunkline_app_repeats_total", help: "Requests repeated and answered from the store.") { $0.repeats },
      stat("trunkline_app_malformed_total", help: "Messages with a bad field.") { $0.malformed },
      stat("trunkline_app_unknown_total", help: "Messages of an unknown type.") { $0.unknown },
      stat("trunkline_app_rate_limited_total", help: "Connections closed for too many messages or bytes a second.") {
        $0.rateLimited
      },
      stat("trunkline_app_requests_refused_total", help: "Requests refused because 1,024 of their device wait for an answer.") {
        $0.unkept
      },
      stat("trunkline_app_stray_commands_total", help: "Commands for a device or request that had ended.") { $0.strayCommands },
    ]
  }
}

public import Foundation
import TrunklineBytes
import TrunklinePhoneLog

extension Phone {
  /// One event, for a log that support staff read: ``Phone/log(_:to:)``.
  ///
  /// An entry never contains tokens, secrets of pushes, descriptions of media (SDP), names, pressed keys, or parameters of calls.
  /// Numbers are masked but for their last two digits.
  public struct LogEntry: Sendable, Hashable, CustomStringConvertible {
    /// The importance of an entry.
    public enum Level: Int, Sendable, CaseIterable, Comparable, CustomStringConvertible {
      /// Each message to and from the gateway, by its type.
      case debug
      /// Normal events of a call.
      case info
      /// Faults that recover, or that the user can mend.
      case warning
      /// A call, or the phone, lacks a function.
      case error

      /// "debug", "info", "warning", "error".
      public var description: String {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warning: "warning"
        case .error: "error"
        }
      }
      /// By importance.
      public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    /// The kind of event: the text to search for.
    public enum Code: String, Sendable, CaseIterable {
      /// A connection attempt; `host`, and `alternate` if it uses another interface than the default route's.
      case socketConnect = "socket-connect"
      /// The upgrade succeeded.
      case socketOpened = "socket-opened"
      /// The socket is closed, or did not open; `code` of RFC 6455.
      case socketClosed = "socket-closed"
      /// The phone's connection to its gateway: `is`, and the close code of a refused login.
      case sessionState = "session-state"
      /// The app's token function is called.
      case tokenAsked = "token-asked"
      /// The app's token function has returned a token.
      case tokenInUse = "token-taken"
      /// The app's token function has returned none; its error is in ``Phone/state``.
      case tokenFailed = "token-failed"
      /// The app's token function has returned a token that does not expire later than the one in use.
      case tokenStale = "token-stale"
      /// A VoIP push; `isReadable`.
      case pushReceived = "push-received"
      /// The system issued or invalidated a push token: `is`.
      case pushToken = "push-token"
      /// The gateway has accepted the push token, or not: `error`.
      case pushRegistered = "push-registered"
      /// The network path has changed.
      case networkChanged = "network-changed"
      /// The app is in the foreground, or not: `isOn`.
      case foreground
      /// The user's permission for the microphone: `is`.
      case microphone
      /// A call has changed its state: `is`, with `peer` and `direction` at first, `codec` once connected, `reason` and `error`
      /// at its end.
      case callState = "call-state"
      /// A connected call is without media, or has it again: `isOn`.
      case callReconnecting = "call-reconnecting"
      /// The call is on hold, by this side or the peer, or no longer: `isHeld`, `isHeldByPeer`.
      case callHeld = "call-held"
      /// Faults of a call's audio: `causes`.
      case callWarnings = "call-warnings"
      /// The app, or its user, requests an action of a call: `does`.
      case callAction = "call-action"
      /// The system performs an action of a call, or has timed it out: `does`.
      case systemAction = "system-action"
      /// The system does not show a call; `error` is CallKit's code.
      case reportRefused = "report-refused"
      /// Media has a path: `generation`, `pair`, `roundTripMs`.
      case mediaConnected = "media-connected"
      /// Media restarts; `generation`.
      case mediaRestart = "media-restart"
      /// Media could not be connected, or is lost: `stage`, `detail`.
      case mediaFailed = "media-failed"
      /// No packet comes from the gateway in a connected call: `is`.
      case mediaSilence = "media-silence"
      /// A request is sent to the audio device: `does`.
      case audioOrder = "audio-order"
      /// The audio device has refused a request: `does`.
      case audioFailed = "audio-failed"
      /// The system has activated the audio session, or deactivated it: `isOn`.
      case audioSession = "audio-session"
      /// The audio route has changed: `to`, and `isFallback` if the chosen route is unavailable.
      case audioRoute = "audio-route"
      /// A message to the gateway, by its type.
      case messageSent = "message-sent"
      /// A message from the gateway, by its type; `unreadable` if it cannot be decoded.
      case messageReceived = "message-received"
      /// A preflight test begins.
      case preflightStarted = "preflight-started"
      /// The preflight test has ended: `network`, `microphone`, `servers`.
      case preflightFinished = "preflight-finished"
      /// The device has left the gateway's list.
      case loggedOut = "logged-out"
      /// The system has dropped all calls.
      case systemReset = "system-reset"
      /// The sink was too slow: `count` entries are lost.
      case logDropped = "log-dropped"
    }

    /// A named value of an entry.
    public struct Field: Sendable, Hashable {
      /// The name: letters only.
      public let name: String
      /// At most 200 characters, none of them a control character.
      public let value: String
      init(_ name: String, _ value: String) {
        self.name = name
        let shown = value.unicodeScalars.prefix(Self.longest).map {
          $0.value < 32 || (127..<160).contains($0.value) ? " " : Character($0)
        }
        self.value = String(shown)
      }
      private static let longest = 200
    }

    /// Time since the phone was made, by a monotonic clock.
    public let time: Duration
    /// The importance.
    public let level: Level
    /// The kind of event.
    public let code: Code
    /// ``Call/id``; in the gateway's log and records the same call has the same id.
    public let call: UUID?
    /// Further values.
    public let fields: [Field]

    /// One line: `12.345 warning media-failed call=0192… stage=ice detail="no pair of candidates works"`.
    public var description: String {
      let words = (call.map { [Field("call", $0.uuidString.lowercased())] } ?? []) + fields
      return LogLine.text(.zero + max(.zero, time)) + " \(level) \(code.rawValue)"
        + words.map { " \($0.name)=" + LogLine.word($0.value) }.joined()
    }
  }
}

import Bytes
public import Foundation
import PhoneLog

extension Phone {
  /// One thing that happened, for a log that support staff read: ``Phone/log(_:to:)``.
  ///
  /// What an entry never holds: tokens, secrets of pushes, descriptions of media (SDP), names, keys that were pressed, parameters of calls. Numbers
  /// are masked but for their last two digits.
  public struct LogEntry: Sendable, Hashable, CustomStringConvertible {
    /// How much it matters.
    public enum Level: Int, Sendable, CaseIterable, Comparable, CustomStringConvertible {
      /// Each message to and from the gateway, by its type.
      case debug
      /// What happens in a call that goes well.
      case info
      /// What mends itself, or is the user's to mend.
      case warning
      /// A call, or the phone, goes without something.
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
      /// By how much they matter.
      public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
    }

    /// What happened: the word to search for.
    public enum Code: String, Sendable, CaseIterable {
      /// A connection attempt; `host`, and `alternate` where it goes over another interface than the default route's.
      case socketConnect = "socket-connect"
      /// The upgrade succeeded.
      case socketOpened = "socket-opened"
      /// It is closed, or did not open; `code` of RFC 6455.
      case socketClosed = "socket-closed"
      /// Where the phone stands with its gateway: `is`, and the close code of a refused login.
      case sessionState = "session-state"
      /// The app's token function is asked.
      case tokenAsked = "token-asked"
      /// It has given a token.
      case tokenInUse = "token-taken"
      /// It has given none; its error is in ``Phone/state``.
      case tokenFailed = "token-failed"
      /// It has given one that ends no later than the one in use.
      case tokenStale = "token-stale"
      /// A VoIP push; `isReadable`.
      case pushReceived = "push-received"
      /// The system gave a push token, or took it away: `is`.
      case pushToken = "push-token"
      /// The gateway has taken the push token, or not: `error`.
      case pushRegistered = "push-registered"
      /// The network path is another.
      case networkChanged = "network-changed"
      /// The app is in front, or not: `isOn`.
      case foreground
      /// What the user says of the microphone: `is`.
      case microphone
      /// A call is in another state: `is`, with `peer` and `direction` at first, `codec` once connected, `reason` and `error` at its end.
      case callState = "call-state"
      /// A connected call is without media, or has it again: `isOn`.
      case callReconnecting = "call-reconnecting"
      /// The call is on hold, by this side or the other, or no more: `isHeld`, `isHeldByPeer`.
      case callHeld = "call-held"
      /// What is wrong with a call's audio: `causes`.
      case callWarnings = "call-warnings"
      /// The app, or the user in it, wants something of a call: `does`.
      case callAction = "call-action"
      /// The system performs something of a call, or has given it up: `does`.
      case systemAction = "system-action"
      /// The system does not show a call; `error` is CallKit's code.
      case reportRefused = "report-refused"
      /// Media has a path: `generation`, `pair`, `roundTripMs`.
      case mediaConnected = "media-connected"
      /// Media is recreated; `generation`.
      case mediaRestart = "media-restart"
      /// Media did not come about, or is lost: `stage`, `detail`.
      case mediaFailed = "media-failed"
      /// Nothing comes from the gateway in a connected call: `is`.
      case mediaSilence = "media-silence"
      /// The audio device is given an order: `does`.
      case audioOrder = "audio-order"
      /// It has refused one: `does`.
      case audioFailed = "audio-failed"
      /// The system has activated the audio session, or not: `isOn`.
      case audioSession = "audio-session"
      /// Audio goes another way: `to`, and `isFallback` where the chosen route is gone.
      case audioRoute = "audio-route"
      /// A message to the gateway, by its type.
      case messageSent = "message-sent"
      /// A message of the gateway, by its type; `unreadable` if it is none.
      case messageReceived = "message-received"
      /// A preflight test begins.
      case preflightStarted = "preflight-started"
      /// It is over: `network`, `microphone`, `servers`.
      case preflightFinished = "preflight-finished"
      /// The device has left the gateway's list.
      case loggedOut = "logged-out"
      /// The system has forgotten all calls.
      case systemReset = "system-reset"
      /// The sink was too slow: `count` entries are lost.
      case logDropped = "log-dropped"
    }

    /// A word of an entry beside its code.
    public struct Field: Sendable, Hashable {
      /// Letters.
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

    /// Since the phone was made, by a clock that only grows.
    public let time: Duration
    /// How much it matters.
    public let level: Level
    /// What happened.
    public let code: Code
    /// ``Call/id``; in the gateway's log and records the same call has the same id.
    public let call: UUID?
    /// What there is to say beside.
    public let fields: [Field]

    /// One line: `12.345 warning media-failed call=0192… stage=ice detail="no pair of candidates works"`.
    public var description: String {
      let words = (call.map { [Field("call", $0.uuidString.lowercased())] } ?? []) + fields
      return LogLine.text(.zero + max(.zero, time)) + " \(level) \(code.rawValue)"
        + words.map { " \($0.name)=" + LogLine.word($0.value) }.joined()
    }
  }
}

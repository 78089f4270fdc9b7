import Foundation

/// The result of testing the parts that a call needs: see ``Phone/preflight()``.
public struct Preflight: Sendable, Hashable {
  /// The gateway, over the phone's session.
  public struct Network: Sendable, Hashable {
    /// True if the gateway answers.
    public var isGood: Bool
    /// The best of three; nil: the gateway did not answer.
    public var roundTripMilliseconds: Double?
    /// Why it is not good.
    public var error: PhoneError?
  }

  /// The microphone, as far as it is known without a call: it is not opened.
  public struct Microphone: Sendable, Hashable {
    /// True if the permission is granted, and there is a microphone.
    public var isGood: Bool
    /// The route that a call's audio would use now; nil: the phone has no `AudioRoutes`.
    public var route: AudioRoute?
    /// Why it is not good.
    public var error: PhoneError?
  }

  /// One TURN server of the gateway's list: tested by an allocation, which is released.
  public struct Server: Sendable, Hashable {
    /// `turn:host:port?transport=udp`, `turns:host:port?transport=tcp`.
    public var url: String
    /// True if it has allocated an address.
    public var isGood: Bool
    /// Time from the connection attempt to the address.
    public var milliseconds: Double?
    /// Its error, or why it could not be reached; nil: it is good.
    public var failure: String?
  }

  /// A call to the gateway itself, which returns the received audio (docs/reference/protocol.md, Test calls): a tone, not the
  /// microphone, and no audio is played.
  public struct TestCall: Sendable, Hashable {
    /// One direction of the call.
    public struct Direction: Sendable, Hashable {
      /// Mean opinion score, 1 to 4.5, by the E-model (ITU-T G.107); nil: no packet was received.
      public var score: Double?
      /// Share of packets that were not received, 0 to 1.
      public var lossFraction: Double?
      /// Interarrival jitter (RFC 3550 §6.4.1).
      public var jitterMilliseconds: Double?
      /// True if sound was received, not only silence.
      public var isHeard: Bool
    }
    /// True if sound passed in both directions, and both scores are 3.1 or better. Nil: the gateway refused the call, which shows
    /// nothing about the network.
    public var isGood: Bool?
    /// The lower score of both directions; nil: one of them has none.
    public var score: Double?
    /// Round trip to the gateway, by RTCP.
    public var roundTripMilliseconds: Double?
    /// The direction to the gateway, as the gateway measured it; nil: the call ended before.
    public var sent: Direction?
    /// The direction to this device.
    public var received: Direction?
    /// Why the result is incomplete: ``PhoneError/gateway(_:)``, ``PhoneError/notConnected``, ``PhoneError/noMedia(_:)``.
    public var error: PhoneError?
  }

  /// The gateway.
  public var network: Network
  /// The microphone.
  public var microphone: Microphone
  /// TURN servers matter only in networks that block UDP to the gateway.
  public var servers: [Server]
  /// Nil: the gateway makes no test calls, the phone was not online, or another call was active.
  public var call: TestCall?

  /// True if gateway and microphone are good, and the test call was not bad.
  public var isReady: Bool { network.isGood && microphone.isGood && call?.isGood != false }
}

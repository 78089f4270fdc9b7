import Foundation

/// What a call needs, tried before there is one: see ``Phone/preflight()``.
public struct Preflight: Sendable, Hashable {
  /// The gateway, over the phone's session.
  public struct Network: Sendable, Hashable {
    /// It answers.
    public var isGood: Bool
    /// The best of three; nil: it did not answer.
    public var roundTripMilliseconds: Double?
    /// Why not.
    public var error: PhoneError?
  }

  /// The microphone, as far as it is known without a call: none is opened.
  public struct Microphone: Sendable, Hashable {
    /// It is granted, and there is one.
    public var isGood: Bool
    /// Where a call's audio would go now; nil: the phone was given no `AudioRoutes`.
    public var route: AudioRoute?
    /// Why not.
    public var error: PhoneError?
  }

  /// One TURN server of the gateway's list: an allocation, which is given back.
  public struct Server: Sendable, Hashable {
    /// `turn:host:port?transport=udp`, `turns:host:port?transport=tcp`.
    public var url: String
    /// It has given an address.
    public var isGood: Bool
    /// From the connection attempt to the address.
    public var milliseconds: Double?
    /// What it said, or why it was not reached; nil: it is good.
    public var failure: String?
  }

  /// A call to the gateway itself, which sends back what it receives (docs/reference/protocol.md, Test calls): a tone, not the microphone, and nothing is played.
  public struct TestCall: Sendable, Hashable {
    /// One way of the call.
    public struct Direction: Sendable, Hashable {
      /// Mean opinion score, 1 to 4.5, by the E-model (ITU-T G.107); nil: no packet came.
      public var score: Double?
      /// Packets that did not come, 0 to 1.
      public var lossFraction: Double?
      /// Interarrival jitter (RFC 3550 §6.4.1).
      public var jitterMilliseconds: Double?
      /// There was sound, not silence alone.
      public var isHeard: Bool
    }
    /// Sound came through both ways, and both scores are 3.1 or better. Nil: the gateway refused the call, which says nothing about the network.
    public var isGood: Bool?
    /// The lower one of both ways; nil: one of them has none.
    public var score: Double?
    /// To the gateway and back, by RTCP.
    public var roundTripMilliseconds: Double?
    /// What came to the gateway, as the gateway measured it; nil: the call ended before.
    public var sent: Direction?
    /// What came here.
    public var received: Direction?
    /// Why there is no whole result: ``PhoneError/gateway(_:)``, ``PhoneError/notConnected``, ``PhoneError/noMedia(_:)``.
    public var error: PhoneError?
  }

  /// The gateway.
  public var network: Network
  /// The microphone.
  public var microphone: Microphone
  /// TURN servers matter only in networks that let no UDP to the gateway through.
  public var servers: [Server]
  /// Nil: the gateway makes no test calls, the phone was not online, or another call was going on.
  public var call: TestCall?

  /// Gateway and microphone are there, and the test call was not bad.
  public var isReady: Bool { network.isGood && microphone.isGood && call?.isGood != false }
}

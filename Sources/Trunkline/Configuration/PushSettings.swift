public import Bytes
public import JSONWebToken
public import Platform
public import PushPolicy

extension Settings {
  /// How apps are woken; without a service's part nothing is sent to its devices.
  public struct Push: Sendable, Equatable {
    /// Where a woken app connects: put into every push.
    public var gateway: String
    public var apns: APNs?
    public var fcm: FCM?
    public var webPush: WebPush?
    /// PEM of the authorities trusted instead of the system's: for a stand-in.
    public var authorities: String?
    public init(gateway: String) { self.gateway = gateway }
  }

  /// A server of a push service.
  public struct PushServer: Sendable, Equatable {
    public var host: String
    public var port: UInt16
    public var path: String
    public init(host: String, port: UInt16, path: String = "") { (self.host, self.port, self.path) = (host, port, path) }
  }

  public struct APNs: Sendable, Equatable {
    public enum Credentials: Sendable, Equatable {
      /// The `.p8` key, its id and the team's.
      case key(Redacted<[UInt8]>, id: String, team: String)
      /// A VoIP Services certificate; `fingerprint` tells one from the next.
      case certificate(TLSFiles, fingerprint: String)
    }
    public var credentials: Credentials
    /// What a `device.put` without topic or env means.
    public var topic: String?
    public var environment = PushTarget.Environment.production
    /// Nil: Apple's.
    public var production: PushServer?
    public var sandbox: PushServer?
  }

  public struct FCM: Sendable, Equatable {
    public var project: String
    public var account: String
    public var key: Redacted<[UInt8]>
    public var tokens: PushServer
    /// Nil: Google's.
    public var service: PushServer?
  }

  public struct WebPush: Sendable, Equatable {
    public var key: Redacted<[UInt8]>
    /// `mailto:` or `https:`.
    public var subject: String
    /// Hosts of endpoints; nil: the browsers' services.
    public var hosts: [String]?

    /// What a page subscribes with (`applicationServerKey`).
    public func publicKey() throws(KeyError) -> String {
      let signer = try TokenSigner(keys: try KeySet(.ES256, keyFile: key.exposed))
      guard let point = signer.publicPoint else { throw .noPrivateKey }
      return Base64URL.encode(point)
    }
  }
}

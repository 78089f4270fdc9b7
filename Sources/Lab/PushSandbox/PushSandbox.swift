import Foundation
import Synchronization
public import TrunklineBytes
import TrunklinePlatform

/// A stand-in for APNs and FCM: HTTP/2 over TLS on one port, apps that wait for pushes on another.
///
/// An app connects to `appsAddress`, writes `{"token":"…"}` and a line break, and gets a line of JSON for each push to that
/// token: `{"service":"apns","id":"…","payload":{…}}`. A push for a token without a waiting app is dropped, as APNs does with
/// `apns-expiration: 0`.
public final class PushSandbox: Sendable {
  public struct Options: Sendable {
    public var address: SocketAddress
    public var appsAddress: SocketAddress
    public var rules = SandboxRules()
    /// PEM of the authorities whose certificates clients must present (APNs' certificate mode); nil: no certificate is requested.
    public var clientAuthorities: String?
    /// One answer for each request, the last for all that follow; empty: real answers.
    public var answers: [SandboxAnswer] = []
    public init(address: SocketAddress, appsAddress: SocketAddress) { (self.address, self.appsAddress) = (address, appsAddress) }
  }
  /// Gets a line for each event, as it happens: for a terminal, without whole tokens.
  public typealias Report = @Sendable (String) -> Void

  /// The bound addresses, with the real port if 0 was requested.
  public let address: SocketAddress
  public let appsAddress: SocketAddress
  /// PEM of the certificate that clients must trust.
  public let certificate: String
  private let loop: EventLoop
  private let thread: Mutex<NamedThread?>

  /// Starts; throws `SystemError` or `SandboxFailure`.
  public init(_ options: Options, report: @escaping Report) throws {
    let identity = try TLSIdentity(clientAuthorities: options.clientAuthorities)
    let loop = try EventLoop(name: "push-sandbox")
    let (service, apps) = (try TCPListener(bind: options.address), try TCPListener(bind: options.appsAddress))
    (address, appsAddress, certificate, self.loop) = (service.localAddress, apps.localAddress, identity.pem, loop)
    thread = Mutex(nil)
    let running = try NamedThread.start(name: "push-sandbox") {
      let server = SandboxServer(loop: loop, identity: identity, service: service, apps: apps, options: options, report: report)
      server.run()
    }
    thread.withLock { $0 = running }
  }

  /// Closes every connection and ends the thread.
  public func stop() {
    loop.stop()
    thread.withLock { thread in
      defer { thread = nil }
      return thread
    }?.join()
  }
}

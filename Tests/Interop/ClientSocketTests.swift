import Foundation
import Synchronization
import Testing
import TrunklineClient

extension Interop {
  /// The SDK's WebSockets on Linux with addresses that a push or an app's settings may hold.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct ClientSocketTests {
    private final class Events: Sendable {
      private let texts = Mutex<[String]>([])
      func take(_ event: SocketEvent) {
        let text =
          switch event {
          case .opened: "opened"
          case .received: "received"
          case .closed(let code, let why): "closed \(code) \(why ?? "")"
          }
        texts.withLock { $0.append(text) }
      }
      var all: [String] { texts.withLock { $0 } }
    }

    @Test
    func
      `no address, a name that leads nowhere, a closed port, 404, a certificate nobody vouches for: said why, and the next one opens`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let sip = try FreePorts.both()
      let app = try FreePorts.tcp()
      let admin = try FreePorts.tcp()
      let certificate = try await OpenSSL.certificate("gateway.example")
      defer { try? FileManager.default.removeItem(atPath: certificate) }
      let tls = "tls: { cert: \(certificate)/sip.pem, key: \(certificate)/sip.key }"
      let listen =
        "listen: { sip: { udp: 127.0.0.1:\(sip), tcp: 127.0.0.1:\(sip) }, app: { address: 127.0.0.1:\(app), \(tls) }, admin: 127.0.0.1:\(admin) }"
      let secure = try await GatewayUnderTest([listen], ports: (sip, app, admin))
      for address in [
        "", "nonsense", "http://127.0.0.1/", "ws://", "ws://127.0.0.1:1/v1/connect",
        "ws://127.0.0.1:\(gateway.app)/v1/nothing", "wss://127.0.0.1:\(secure.app)/v1/connect",
        "wss://127.0.0.1:\(gateway.app)/v1/connect",
      ] {
        let (sockets, bad, good) = (WebSockets(), Events(), Events())
        let first = sockets.open(address) { bad.take($0) }
        #expect(await eventually(within: 15) { !bad.all.isEmpty }, "\(address): nothing is said")
        #expect(bad.all.first?.hasPrefix("closed 1006 ") == true && bad.all.first != "closed 1006 ", "\(address): \(bad.all)")
        first.send(Array("{}".utf8))
        first.close(1000)
        let second = sockets.open("ws://127.0.0.1:\(gateway.app)/v1/connect") { good.take($0) }
        #expect(await eventually(within: 10) { good.all.first == "opened" }, "after \(address): \(good.all)")
        second.close(1000)
        #expect(await eventually(within: 5) { good.all.count == 2 }, "after \(address): \(good.all)")
      }
      try await gateway.finish()
      try await secure.finish()
    }
  }
}

import Foundation
import Glibc
import Testing
import TrunklineBytes
import TrunklinePlatform

extension Interop {
  /// Everybody's app comes at once. The app thread accepts 64 a turn: what that may
  /// not touch is the telephone side.
  @Suite(.enabled(if: Surroundings.missing == nil, "\(Surroundings.missing ?? "")"), .serialized) struct ArrivalTests {
    /// Sockets that connect without waiting, from ten addresses, as one address may have 200.
    private final class Burst {
      private(set) var sockets: [Int32] = []
      init(_ count: Int, to port: UInt16) throws {
        for index in 0..<count {
          let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
          let fd = socket(AF_INET, type, 0)
          guard fd >= 0 else { throw Spawned.Failure(description: "no socket: \(String(cString: strerror(errno)))") }
          sockets.append(fd)
          let own = SocketAddress(IPAddress(127, 0, 9, UInt8(1 + index % 10)), 0)
          guard own.withSockaddr({ bind(fd, $0, $1) }) == 0 else { throw Spawned.Failure(description: "cannot bind \(own)") }
          _ = SocketAddress(.loopback, port).withSockaddr { connect(fd, $0, $1) }
        }
      }

      /// The first octet of a request on each, since the kernel keeps to itself what says nothing; false if one cannot connect.
      func speak() -> Bool {
        for fd in sockets {
          var ready = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
          guard poll(&ready, 1, 5_000) == 1, send(fd, "G", 1, Int32(MSG_NOSIGNAL)) == 1 else { return false }
        }
        return true
      }

      deinit { for fd in sockets { close(fd) } }
    }

    /// What this process may open, and with it the gateway that it starts.
    private static func openFiles() -> Int {
      var limit = rlimit()
      guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1_024 }
      if limit.rlim_cur < min(limit.rlim_max, 8_192) {
        limit.rlim_cur = min(limit.rlim_max, 8_192)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      }
      return Int(clamping: limit.rlim_cur)
    }

    @Test func `two thousand connections that arrive at once do not delay SIP: no answer is late enough to be asked for again`()
      async throws
    {
      let count = min(2_000, Self.openFiles() / 2)
      let gateway = try await GatewayUnderTest()
      let trunk = try RawTrunk(gateway)
      #expect(trunk.ask(trunk.request("OPTIONS"), within: 5)?.code == 200)
      for _ in 0..<3 {
        var burst: Burst? = try Burst(count, to: gateway.app)
        #expect(burst?.speak() == true)
        // T1 (RFC 3261 §17.1.1.1): a caller without an answer by then sends again. By the kernel's stamps: when this test reads is not judged.
        for _ in 0..<10 {
          let options = try #require(trunk.ask(trunk.request("OPTIONS")))
          #expect(options.code == 200 && options.took < .milliseconds(500), "\(options.took)")
          let call = try #require(trunk.ask(trunk.request("INVITE", to: "+15559999999", sdp: RawTrunk.offer())))
          #expect(call.code == 404 && call.took < .milliseconds(500), "\(call.took)")
        }
        #expect(await eventually(within: 10) { try gateway.metric("trunkline_app_connections") ?? 0 >= Double(count) })
        #expect(burst?.sockets.count == count)
        burst = nil
        #expect(await eventually(within: 20) { try gateway.metric("trunkline_app_connections") == 0 })
      }
      #expect(try gateway.sum("trunkline_app_connections_refused_total") == 0)
      #expect(try gateway.sum("trunkline_sip_retransmissions_total", "out") == 0)
      _ = try await gateway.records(30)
      try await gateway.finish()
    }
  }
}

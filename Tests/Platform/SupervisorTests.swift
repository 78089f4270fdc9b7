import Foundation
import Glibc
import Testing

@testable import TrunklinePlatform

@Suite struct SupervisorTests {
  /// A datagram socket as systemd has one, and what arrives on it.
  private func listening(_ name: String, isAbstract: Bool) throws -> Int32 {
    let fd = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = (isAbstract ? [0] : []) + Array(name.utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count + (isAbstract ? 0 : 1))
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(fd, $0, length) }
    }
    try #require(status == 0)
    return fd
  }

  @Test(arguments: [false, true]) func `systemd is notified on its socket, by path and by abstract name`(isAbstract: Bool) throws
  {
    let name = isAbstract ? "trunkline-\(UUID().uuidString)" : NSTemporaryDirectory() + "notify-\(UUID().uuidString.prefix(8))"
    let fd = try listening(name, isAbstract: isAbstract)
    defer {
      close(fd)
      if !isAbstract { unlink(name) }
    }
    let supervisor = Supervisor(socket: (isAbstract ? "@" : "") + name, watchdog: "10000000")
    #expect(supervisor.watchdogInterval == .seconds(5))
    supervisor.write("READY=1\nSTATUS=12 trunks")
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = recv(fd, &bytes, bytes.count, Int32(MSG_DONTWAIT))
    #expect(count > 0 && String(decoding: bytes.prefix(max(0, count)), as: UTF8.self) == "READY=1\nSTATUS=12 trunks")
  }

  @Test(arguments: [nil, "", "relative", "/nobody/is/here", "/" + String(repeating: "x", count: 200)] as [String?])
  func `without systemd, or with a socket that is gone, nothing happens`(socket: String?) {
    let supervisor = Supervisor(socket: socket, watchdog: nil)
    supervisor.write("READY=1")
    #expect(supervisor.watchdogInterval == nil)
    #expect(
      Supervisor(socket: nil, watchdog: "1000").watchdogInterval == nil
        && Supervisor(socket: "@a", watchdog: "x").watchdogInterval == nil)
  }
}

import Testing
import TrunklineBytes

@testable import TrunklinePlatform

@Suite struct LocalAddressTests {
  private func ip(_ text: String) -> IPAddress { IPAddress(text)! }

  @Test func `addresses that may begin nothing new are known by their flags`() {
    let table = """
      20010db8000000000000000000000001 02 40 00 80     eth0
      20010db8000000000000000000000002 02 40 00 a0     eth0
      20010db8000000000000000000000003 02 40 00 c0     eth0
      20010db8000000000000000000000004 02 40 00 c4     eth0
      20010db8000000000000000000000005 02 40 00 88     eth0
      fe8000000000000000fc00fffe000001 02 40 20 80     eth0
      00000000000000000000000000000001 01 80 10 80       lo
      """
    let (deprecated, tentative, duplicate) = (ip("2001:db8::2"), ip("2001:db8::3"), ip("2001:db8::5"))
    #expect(withheldAddresses(table) == [deprecated, tentative, duplicate], "not the optimistic one")
  }

  @Test(arguments: ["", "\n\n", "x", "20010db8000000000000000000000002 02 40 00 zz eth0", "2001 02 40 00 a0 eth0", "🌍 1 2 3 4 5"])
  func `a table that is none withholds nothing`(table: String) { #expect(withheldAddresses(table).isEmpty) }

  @Test func `this machine's own addresses are those of its interfaces that run`() throws {
    #expect(try localAddresses(loopback: true).contains(.loopback))
    #expect(try !localAddresses().contains(.loopback))
  }

  @Test func `of what a machine has, that is used which can be reached, each address once`() {
    let machine = MachineAddresses([
      .init(.loopback, prefixLength: 8), .init(ip("2001:db8::7"), prefixLength: 64), .init(ip("192.0.2.7"), prefixLength: 24),
      .init(ip("192.0.2.7"), prefixLength: 25), .init(ip("172.17.0.1"), prefixLength: 16, isRunning: false),
      .init(ip("2001:db8::8"), prefixLength: 64, isWithheld: true), .init(ip("fe80::1"), prefixLength: 64),
    ])
    #expect(machine.usable() == [ip("192.0.2.7"), ip("2001:db8::7")])
    #expect(machine.usable(loopback: nil) == machine.usable())
    #expect(machine.usable(loopback: true) == [ip("192.0.2.7"), .loopback, ip("2001:db8::7")])
    #expect(machine.serves(ip("192.0.2.7")) == true && machine.serves(ip("172.17.0.1")) == false)
    #expect(machine.serves(ip("192.0.2.8")) == nil)
    #expect(machine.networks.contains(IPNetwork("192.0.2.0/24")!) && !machine.networks.contains { $0.contains(.loopback) })
    let alone = MachineAddresses([.init(.loopback, prefixLength: 8)])
    #expect(alone.usable().isEmpty && alone.usable(loopback: nil) == [.loopback])
  }
}

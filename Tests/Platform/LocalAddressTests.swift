import Bytes
import Testing

@testable import Platform

@Suite struct LocalAddressTests {
  @Test func `addresses that the kernel deprecates are known by their flag`() {
    let table = """
      20010db8000000000000000000000001 02 40 00 80     eth0
      20010db8000000000000000000000002 02 40 00 a0     eth0
      fe8000000000000000fc00fffe000001 02 40 20 80     eth0
      00000000000000000000000000000001 01 80 10 80       lo
      """
    #expect(deprecatedAddresses(table) == [IPAddress("2001:db8::2")!])
  }

  @Test(arguments: ["", "\n\n", "x", "20010db8000000000000000000000002 02 40 00 zz eth0", "2001 02 40 00 a0 eth0", "🌍 1 2 3 4 5"])
  func `a table that is none deprecates nothing`(table: String) { #expect(deprecatedAddresses(table).isEmpty) }

  @Test func `this machine's own addresses are those of its interfaces that run`() throws {
    #expect(try localAddresses(loopback: true).contains(.loopback))
    #expect(try !localAddresses().contains(.loopback))
  }
}

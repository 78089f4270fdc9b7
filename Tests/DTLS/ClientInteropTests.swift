import CTrunklineOpenSSL
import Foundation
import Glibc
import Testing
import TrunklineBytes
import TrunklineSRTP

@testable import TrunklineDTLS

/// `openssl s_client` over UDP on loopback: another program's handshake, and its exported keys beside ours.
@Suite(.serialized) struct ClientInteropTests {
  @Test(
    .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl"), "the peer is Debian's openssl"),
    arguments: SRTPProfile.offered)
  func `s_client exports the same keys and shows its own certificate`(_ profile: SRTPProfile) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("dtls-\(getpid())-\(profile.rawValue)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let peer = try DTLSIdentity()
    let (key, certificate) = try pem(of: peer, in: folder)
    let ours = try DTLSIdentity()
    var server = try DTLSAssociation(.server, identity: ours, remoteFingerprint: peer.fingerprint)
    let socket = try UDPServer()

    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = [
      "s_client", "-dtls1_2", "-connect", "127.0.0.1:\(socket.port)", "-use_srtp", profile.openSSLName, "-keymatexport",
      "EXTRACTOR-dtls_srtp", "-keymatexportlen", "\(2 * (profile.keyBytes + profile.saltBytes))", "-cert", certificate, "-key",
      key,
    ]
    let (input, output) = (Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    defer {
      if process.isRunning { process.terminate() }
      process.waitUntilExit()
    }
    for _ in 0..<100 where server.state == .handshaking {
      if let datagram = socket.receive(milliseconds: 100) { server.receive(datagram) }
      server.handleTimeout()
      for datagram in server.drained() { socket.send(datagram) }
    }
    #expect(server.state == .established)
    let exported = server.keyMaterial
    let keys = try #require(exported)
    #expect(keys.profile == profile && server.peerFingerprint == peer.fingerprint)

    // s_client prints its report after the handshake; closing its input ends it.
    try input.fileHandleForWriting.close()
    let report = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    let line = report.split(separator: "\n").first { $0.contains("Keying material:") && !$0.contains("exporter") }
    let text = try #require(line).split(separator: ":")[1].trimmingCharacters(in: .whitespaces)
    let theirs = SRTPKeyMaterial(profile: profile, exported: try #require(hexBytes(text)))
    #expect(theirs == keys)
  }

  /// The identity's key and certificate as files, since s_client reads nothing else.
  private func pem(of identity: DTLSIdentity, in folder: URL) throws -> (key: String, certificate: String) {
    let key = folder.appendingPathComponent("key.pem").path
    let certificate = folder.appendingPathComponent("cert.pem").path
    let keyFile = try #require(BIO_new_file(key, "w"))
    #expect(PEM_write_bio_PrivateKey(keyFile, SSL_CTX_get0_privatekey(identity.context), nil, nil, 0, nil, nil) == 1)
    BIO_free(keyFile)
    let certificateFile = try #require(BIO_new_file(certificate, "w"))
    #expect(PEM_write_bio_X509(certificateFile, SSL_CTX_get0_certificate(identity.context)) == 1)
    BIO_free(certificateFile)
    return (key, certificate)
  }
}

/// A UDP socket on loopback that answers the latest sender.
private final class UDPServer {
  let port: UInt16
  private let descriptor: Int32
  private var peer = sockaddr_in()

  init() throws {
    let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    self.descriptor = descriptor
    try #require(descriptor >= 0)
    var local = sockaddr_in()
    local.sin_family = sa_family_t(AF_INET)
    local.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &local) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, size) == 0 && getsockname(descriptor, address, &size) == 0
      }
    }
    try #require(isBound)
    port = UInt16(bigEndian: local.sin_port)
  }
  deinit { close(descriptor) }

  func receive(milliseconds: Int32) -> [UInt8]? {
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&wanted, 1, milliseconds) == 1 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 2048)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let count = withUnsafeMutablePointer(to: &peer) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { recvfrom(descriptor, &bytes, 2048, 0, $0, &size) }
    }
    return count > 0 ? Array(bytes[..<count]) : nil
  }

  func send(_ datagram: [UInt8]) {
    withUnsafePointer(to: &peer) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = sendto(descriptor, datagram, datagram.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}

import Foundation
import Testing

/// What an iPhone's compiler reads otherwise than Linux's: lines that only it compiles, and C of the system.
@Suite struct DarwinTests {
  /// Lines that no compiler has read here, but for imports: each is one for which Darwin and Glibc differ. By file; keep them few.
  private static let unread = [
    "Client/AppleStandIn/Shells/UnixSocket.swift": 8, "Client/TrunklineCallDirectory/CallDirectoryLoader.swift": 1,
    "Client/TrunklineCallDirectory/DirectoryFolder.swift": 4,
    "Client/TrunklineClient/Media/DatagramSocket.swift": 4, "Client/TrunklineClient/Phone.swift": 1,
  ]

  /// Of the C library: Darwin has each of these, and Swift sees it with the same types, or ours convert (`UInt32(IFF_UP)`).
  private static let library: Set<String> = [
    "atan2f", "cos", "cosf", "exp", "log10", "log2", "pow", "sin", "sinf", "tanh", "floor",
    "AF_INET", "AF_INET6", "AF_UNIX", "EINTR", "EAGAIN", "O_CLOEXEC", "O_CREAT", "O_NONBLOCK", "O_RDONLY", "O_TRUNC", "O_WRONLY",
    "F_SETFL",
    "bind", "chmod", "close", "connect", "fcntl", "fsync", "getsockname", "listen", "open", "poll", "read", "recv", "recvfrom",
    "rename",
    "send", "sendto", "shutdown", "unlink", "write", "setsockopt", "pipe", "memcpy", "memcmp", "strerror",
    "sockaddr", "sockaddr_storage", "sockaddr_in", "sockaddr_in6", "sockaddr_un", "sa_family_t", "socklen_t", "ss_family",
    "sin_family",
    "sin_port", "sin_addr", "s_addr", "sin6_family", "sin6_port", "sin6_addr", "sun_family", "sun_path", "in_addr", "in6_addr",
    "pollfd", "fd", "events", "revents", "POLLIN", "timeval", "tv_sec", "tv_usec", "timespec", "tv_nsec", "clock_gettime",
    "CLOCK_MONOTONIC",
    "EEXIST", "ENOENT", "FD_CLOEXEC", "F_GETFL", "F_SETFD", "IFF_UP", "SHUT_RDWR", "addrinfo", "ai_addr", "ai_addrlen",
    "ai_family", "ai_next",
    "freeaddrinfo", "freeifaddrs", "fstat", "getaddrinfo", "getifaddrs", "ifaddrs", "ifa_addr", "ifa_flags", "ifa_next", "link",
    "mkdir",
    "nfds_t", "off_t", "pread", "pwrite", "sa_family", "stat", "st_mode", "st_size",
  ]
  /// OpenSSL's, Opus', and those of AudioToolbox, which has a surface.
  nonisolated(unsafe) private static let others =
    /^_?(SSL|DTLS|EVP|BIO|X509|ASN1|BN|EC|HMAC|RAND|SHA|MD5|CRYPTO|OSSL|ERR|OPENSSL|NID|SRTP|srtp|ssl|bio|evp|x509|cossl|opus|OPUS|Opus|copus|Audio|AU|kAudio|m[A-Z]|component|input|no[A-Z])/

  /// Last parts of C's names in the index: `c:@F@bind`, `c:@S@timeval@FI@tv_sec`, `c:@macro@EINTR`.
  private static func isForeign(_ usr: String) -> Bool {
    guard usr.hasPrefix("c:@"), !usr.hasPrefix("c:@M@"), let name = usr.split(separator: "@").last else { return false }
    return !library.contains(String(name)) && !usr.split(separator: "@").contains { $0.firstMatch(of: others) != nil }
  }

  @Test func `what no compiler reads on Linux is a few lines`() throws {
    var found: [String: Int] = [:]
    for module in try AvailabilityTests.modules() {
      for file in try SurfaceBuild.files(module.path) {
        let text = try String(contentsOfFile: file, encoding: .utf8)
        let lines = text.components(separatedBy: "\n")
        let phone = PlatformLines.compiled(text, by: .iPhone)
        let unread = phone.subtracting(PlatformLines.compiled(text, by: .linux))
          .subtracting(PlatformLines.compiled(text, by: .surface))
          .filter { !lines[$0 - 1].contains("import ") && !lines[$0 - 1].allSatisfy(\.isWhitespace) }
        let short = String(file.dropFirst(SurfaceBuild.root.count + "/Sources/".count))
        if !unread.isEmpty { found[short] = unread.count }
        for number in phone where lines[number - 1].contains("import Glibc") {
          Issue.record("\(short):\(number): no Glibc there")
        }
      }
    }
    #expect(found == Self.unread)
  }

  @Test func `the SDK uses nothing of the C library that Darwin has not, or has otherwise`() throws {
    let build = try SurfaceBuild.shared.get()
    let files = Set(try AvailabilityTests.modules().flatMap { try SurfaceBuild.files($0.path) })
    var phone: [String: Set<Int>] = [:]
    for file in files { phone[file] = PlatformLines.compiled(try String(contentsOfFile: file, encoding: .utf8), by: .iPhone) }
    for index in [build.index, SurfaceBuild.productIndex] {
      let found = try IndexStore(path: index).references(in: { files.contains($0) }, to: Self.isForeign).references
      for use in found where phone[use.file]?.contains(use.line) == true {
        Issue.record("\(use.file):\(use.line): \(use.usr): add it to `library` if Darwin has it with the same types")
      }
    }
  }

  @Test func `the rules tell lines and names apart`() {
    let text =
      "#if canImport(Darwin)\na\n#else\nb\n#endif\n#if !APPLE_SURFACE && (os(Linux) || os(macOS))\nc\n#elseif os(iOS)\nd\n#endif\ne"
    #expect(PlatformLines.compiled(text, by: .iPhone) == [2, 9, 11])
    #expect(PlatformLines.compiled(text, by: .linux) == [4, 7, 11])
    #expect(PlatformLines.compiled(text, by: .surface) == [4, 11])
    #expect(Self.isForeign("c:@F@epoll_wait") && Self.isForeign("c:@Ea@MSG_OOB@MSG_NOSIGNAL"))
    #expect(!Self.isForeign("c:@F@bind") && !Self.isForeign("c:@F@SSL_new") && !Self.isForeign("c:@M@Glibc"))
  }
}

import Foundation
import TrunklinePlatform

/// `serve --check`: checks the files that `serve` opens when it starts.
extension ConfigurationParser {
  private static let soonSeconds: Int64 = 14 * 86_400

  func checkCertificates(_ configuration: Settings) {
    let listen = configuration.listen
    if let files = listen.appTLS { checkTLS(files, "listen.app.tls", host: configuration.push.flatMap { host($0.gateway) }) }
    if let files = listen.adminTLS { checkTLS(files, "listen.admin.tls") }
    if let server = listen.sipServer {
      let host = listen.advertised.first { $0.transport == .tls }?.host
      let name = host.map { $0.address?.description ?? $0.host }
      let isOther = server.others.contains { other in
        guard let name, let certificate = other.certificate else { return false }
        return PEMFile(path: certificate).names(name)
      }
      checkTLS(
        server.identity, "listen.sip.tls", host: isOther ? nil : name, because: "where advertise sends peers")
      for (index, files) in server.others.enumerated() {
        let path = "listen.sip.tls.certificates[\(index)]"
        checkTLS(files, path)
        guard let certificate = files.certificate, let why = PEMFile(path: certificate).unaskable else { continue }
        problem(at: path + ".cert", "\(certificate) cannot be one of several: \(why)")
      }
    }
    for (index, trunk) in configuration.trunks.enumerated() { checkTLS(trunk.tls, "trunks[\(index)].tls") }
    if let tls = configuration.push?.tls {
      checkTLS(TLSFiles(certificate: tls.certificate, key: tls.key), "push.apns.certificate")
      checkAuthorities(tls.authorities, at: "push.ca")
    }
    checkAuthorities(configuration.routes.webhookAuthorities, at: "routes.webhook_ca")
    checkAuthorities(configuration.routes.streamAuthorities, at: "routes.stream_ca")
    checkAuthorities(configuration.verifier?.authorities, at: "verifier.ca")
  }

  private func host(_ url: String) -> String? { URLComponents(string: url)?.host?.trimmingCharacters(in: ["[", "]"]) }

  /// `host`: the host that clients contact with this certificate, unless a proxy is before us; `reason`: the key that sends them
  /// there.
  private func checkTLS(
    _ files: TLSFiles, _ path: String, host: String? = nil, because reason: String = "where push.gateway sends apps"
  ) {
    checkAuthorities(files.authorities, at: path + ".ca")
    guard let certificate = files.certificate, let key = files.key else { return }
    let chain = PEMFile(path: certificate)
    guard checkChain(chain, path + ".cert") else { return }
    switch PEMFile(path: key).key(of: chain) {
    case .pairs: break
    case .other: problem(at: path + ".key", "\(key) is not the key of \(certificate): name the two files that were made together")
    case .encrypted:
      problem(
        at: path + ".key",
        "\(key) is encrypted, and the gateway cannot ask for its passphrase: openssl pkey -in \(key) -out NEW.key")
    case .unreadable: problem(at: path + ".key", "\(key) holds no private key in PEM")
    }
    if let host, !chain.names(host) {
      problem(at: path + ".cert", "\(certificate) is not for \(host), \(reason)", .warning)
    }
  }

  /// False if the chain is unusable.
  private func checkChain(_ chain: PEMFile, _ path: String) -> Bool {
    let certificates = chain.certificates()
    guard !certificates.isEmpty else {
      problem(at: path, "\(chain.path) holds no readable certificate in PEM")
      return false
    }
    let written = chain.writtenCertificates
    if certificates.count < written {
      problem(
        at: path, "certificate \(certificates.count + 1) of \(written) in \(chain.path) cannot be read: copy the file again")
    }
    for certificate in certificates {
      let remaining = certificate.expires - WallClock.nowMilliseconds() / 1_000
      if remaining < 0 {
        problem(at: path, "\(certificate.subject) in \(chain.path) has expired: renew it")
      } else if remaining < Self.soonSeconds {
        let days = (remaining + 86_399) / 86_400
        problem(at: path, "\(certificate.subject) in \(chain.path) expires within \(days) days: renew it", .warning)
      }
    }
    return true
  }

  private func checkAuthorities(_ file: String?, at path: String) {
    guard let file, PEMFile(path: file).certificates().isEmpty else { return }
    problem(at: path, "\(file) holds no readable certificate in PEM")
  }

  func checkFolders(_ configuration: Settings) {
    // SQLite, its write-ahead log and the journal create files in the same folder.
    checkFile(configuration.store, at: "store.sqlite")
    checkFile(configuration.records, at: "records.file")
    guard let file = FileHandle(forReadingAtPath: configuration.store) else { return }
    defer { try? file.close() }
    let head = (try? file.read(upToCount: 16)) ?? nil
    if let head, !head.isEmpty, head != Data("SQLite format 3\0".utf8) {
      problem(at: "store.sqlite", "\(configuration.store) is not an SQLite database: name another file")
    }
  }

  /// Checks a file that is created if it is missing.
  private func checkFile(_ file: String, at path: String) {
    let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder) else {
      return problem(at: path, "the folder \(folder) is not there: mkdir -p \(folder)")
    }
    guard isFolder.boolValue else { return problem(at: path, "\(folder) is a file, not a folder: name another path") }
    if FileManager.default.fileExists(atPath: file, isDirectory: &isFolder), isFolder.boolValue {
      return problem(at: path, "\(file) is a folder: name a file in it")
    }
    for entry in [folder, file] where access(entry, F_OK) == 0 && access(entry, W_OK) != 0 {
      return problem(
        at: path, "cannot write \(entry): \(String(cString: strerror(errno))); the user that runs trunkline must own it")
    }
  }
}

import Foundation
import Testing
import TrunklinePlatform

extension Interop {
  /// Deploy's configurations for the programs around the gateway, offline, each checked by the program itself.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct DeployTests {
    private let deploy = Surroundings.package + "/Deploy"

    private func folder() throws -> String {
      let path = NSTemporaryDirectory() + "trunkline-deploy-\(UUID().uuidString.prefix(8))"
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      return path
    }

    /// Runs a program to its end; returns its output, or throws with the reason.
    @discardableResult private func run(_ program: String, _ arguments: [String], in folder: String) async throws -> String {
      let process = try Spawned(
        URL(fileURLWithPath: program).lastPathComponent, "/usr/bin/env", [program] + arguments, in: folder)
      let status = try await process.finish(within: 30)
      guard status == 0 else { throw Spawned.Failure(description: "\(program): \(status)\n\(process.text.suffix(3_000))") }
      return process.text
    }

    private static func isThere(_ program: String) -> Bool {
      Surroundings.isRequired || Surroundings.program(program) != nil
        || FileManager.default.isExecutableFile(atPath: "/usr/sbin/" + program)
    }

    @Test(.enabled(if: isThere("kamailio"), "no kamailio: run Scripts/install test"))
    func `kamailio accepts its configuration, and the lists beside it`() async throws {
      let folder = try folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      for name in ["nodes.list", "trunks.list"] {
        try FileManager.default.copyItem(atPath: deploy + "/kamailio/" + name, toPath: folder + "/" + name)
      }
      try EdgeUnderTest.configuration(port: 5060, lists: folder)
        .write(toFile: folder + "/kamailio.cfg", atomically: true, encoding: .utf8)
      try await run(Surroundings.kamailio ?? "kamailio", ["-c", "-f", folder + "/kamailio.cfg"], in: folder)
      // `-c` does not read the lists: their rows are checked by the rules of Kamailio's manual
      let rows = try ["nodes.list", "trunks.list"].map { name in
        try String(contentsOfFile: folder + "/" + name, encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") }
      }
      #expect(rows[0].allSatisfy { $0.firstMatch(of: /^1 sip:[0-9.]+:\d+(;transport=tcp)?$/) != nil } && rows[0].count > 1)
      #expect(rows[1].allSatisfy { $0.firstMatch(of: /^1 [0-9.]+  *\d+ \d+ \w+$/) != nil } && !rows[1].isEmpty, "\(rows[1])")
    }

    @Test(.enabled(if: isThere("haproxy"), "no haproxy: run Scripts/install test"))
    func `haproxy accepts its configuration`() async throws {
      let folder = try folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      try await Self.certificate(in: folder, run)
      try await run("sh", ["-c", "cat tls.crt tls.key >trunkline.pem && cp tls.crt nodes-ca.pem"], in: folder)
      try String(contentsOfFile: deploy + "/haproxy/haproxy.cfg", encoding: .utf8).replacing("/etc/haproxy", with: folder)
        .write(toFile: folder + "/haproxy.cfg", atomically: true, encoding: .utf8)
      try await run("haproxy", ["-c", "-f", "haproxy.cfg"], in: folder)
    }

    /// Makes a certificate for tests in a folder, by a run of `openssl`.
    private static func certificate(
      in folder: String, _ run: (String, [String], String) async throws -> String
    ) async throws {
      _ = try await run(
        "openssl",
        [
          "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "tls.key", "-out", "tls.crt", "-days", "2", "-subj",
          "/CN=n1",
        ],
        folder)
    }

    @Test(.enabled(if: isThere("redis-server"), "no redis-server: run Scripts/install test"), arguments: [false, true])
    func `redis starts with its configuration and throws nothing out, and so does a Sentinel`(isSentinel: Bool) async throws {
      let folder = try folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let port = try FreePorts.tcp()
      let name = isSentinel ? "sentinel.conf" : "redis.conf"
      let text = try String(contentsOfFile: deploy + "/redis/" + name, encoding: .utf8)
      // an address of this machine, so that nothing is requested of the network
      let own = text.replacing("10.0.0.11", with: "127.0.0.1").replacing("/var/lib/redis", with: folder)
      try own.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
      let server = try Spawned(
        "redis", "/usr/bin/env",
        ["redis-server", name] + ["--port", "\(port)", "--bind", "127.0.0.1"] + (isSentinel ? ["--sentinel"] : []), in: folder)
      defer { server.signal(SIGTERM) }
      func ask(_ words: String...) async throws -> String { try await run("redis-cli", ["-p", "\(port)"] + words, in: folder) }
      #expect(await eventually(within: 10) { FreePorts.isTaken(port) || !server.isRunning })
      #expect(server.isRunning, "\(server.text)")
      if isSentinel {
        #expect(try await ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "trunkline").contains("127.0.0.1"))
      } else {
        #expect(try await ask("CONFIG", "GET", "maxmemory-policy").contains("noeviction"))
        #expect(try await ask("CONFIG", "GET", "appendonly").contains("yes"))
      }
      server.signal(SIGTERM)
      _ = try await server.finish(within: 10)
    }

    @Test(.enabled(if: isThere("docker-compose"), "no docker-compose: run Scripts/install test"))
    func `docker-compose accepts its file`() async throws {
      let folder = try folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      try await run("docker-compose", ["-f", deploy + "/compose/docker-compose.yml", "config", "-q"], in: folder)
    }

    @Test(.enabled(if: isThere("systemd-analyze"), "no systemd-analyze"))
    func `systemd accepts the unit of instances, which differs from the single one in names and patience`() async throws {
      let folder = try folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let one = try String(contentsOfFile: deploy + "/systemd/trunkline.service", encoding: .utf8)
      let many = try String(contentsOfFile: deploy + "/systemd/trunkline@.service", encoding: .utf8)
      func lines(_ text: String) -> Set<Substring> { Set(text.split(separator: "\n").filter { !$0.hasPrefix("#") }) }
      let differing = lines(many).subtracting(lines(one)).map { $0.prefix { $0 != "=" } }.sorted()
      #expect(
        differing == ["Description", "ExecStart", "ExecStartPre", "StateDirectory", "TimeoutStopSec", "WorkingDirectory"])
      // the unit's program need not be installed
      try many.replacing("/usr/bin/trunkline", with: "/bin/true")
        .write(toFile: folder + "/trunkline@a.service", atomically: true, encoding: .utf8)
      let said = try await run("systemd-analyze", ["verify", folder + "/trunkline@a.service"], in: folder)
      #expect(!said.contains("trunkline@a.service"), "\(said)")
      let security = try await run(
        "sh", ["-c", "systemd-analyze security --offline=true trunkline@a.service | tail -1"], in: folder)
      let level = security.firstMatch(of: /service: ([0-9.]+)/).flatMap { Double($0.1) }
      #expect(level ?? 10 <= 2, "\(security)")
    }

    @Test(.enabled(if: isThere("systemd-analyze"), "no systemd-analyze"))
    func `systemd accepts the unit that follows the cluster's records`() async throws {
      let folder = try folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      try String(contentsOfFile: deploy + "/records/trunkline-records.service", encoding: .utf8)
        .replacing("/usr/bin/trunkline", with: "/bin/true")
        .write(toFile: folder + "/trunkline-records.service", atomically: true, encoding: .utf8)
      let said = try await run("systemd-analyze", ["verify", folder + "/trunkline-records.service"], in: folder)
      #expect(!said.contains("trunkline-records.service"), "\(said)")
      let security = try await run(
        "sh", ["-c", "systemd-analyze security --offline=true trunkline-records.service | tail -1"], in: folder)
      let level = security.firstMatch(of: /service: ([0-9.]+)/).flatMap { Double($0.1) }
      #expect(level ?? 10 <= 3, "\(security)")
    }

    /// A stub of systemctl that records its arguments, and web servers instead of gateways.
    @Test func `roll restarts one instance after the other, and none while the other is not ready`() async throws {
      let folder = try folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let ports = [try FreePorts.tcp(), try FreePorts.tcp()]
      let stub = """
        #!/bin/sh
        echo "$1 $2" >>systemctl.log
        case "$1-$2" in
          stop-*) kill "$(cat "$2.pid")" ;;
          start-*) python3 -m http.server --bind 127.0.0.1 "$(cat "$2.port")" --directory pages >/dev/null 2>&1 & echo $! >"$2.pid" ;;
        esac
        """
      try stub.write(toFile: folder + "/systemctl", atomically: true, encoding: .utf8)
      try FileManager.default.createDirectory(atPath: folder + "/pages/v1", withIntermediateDirectories: true)
      try "{}".write(toFile: folder + "/pages/v1/ready", atomically: true, encoding: .utf8)
      for (name, port) in zip(["a", "b"], ports) {
        try "\(port)".write(toFile: folder + "/trunkline@\(name).port", atomically: true, encoding: .utf8)
      }
      try await run("chmod", ["+x", "systemctl"], in: folder)
      let roll =
        "PATH=$PWD:$PATH EDGE_SECONDS=0 READY_SECONDS=10 \(Surroundings.package)/Scripts/roll a=http://127.0.0.1:\(ports[0]) b=http://127.0.0.1:\(ports[1])"
      // no instance is ready: nothing is changed
      let refused = try Spawned("roll", "/bin/sh", ["-c", roll], in: folder)
      #expect(try await refused.finish(within: 20) == 1)
      #expect(refused.text.contains("b is not ready") && !FileManager.default.fileExists(atPath: folder + "/systemctl.log"))
      try await run("sh", ["-c", "./systemctl start trunkline@a; ./systemctl start trunkline@b"], in: folder)
      defer {
        for name in ["a", "b"] {
          let pid = (try? String(contentsOfFile: folder + "/trunkline@\(name).pid", encoding: .utf8))?
            .trimmingCharacters(in: .whitespacesAndNewlines)
          if let pid = pid.flatMap(Int32.init) { kill(pid, SIGTERM) }
        }
      }
      #expect(await eventually(within: 10) { ports.allSatisfy { FreePorts.isTaken($0) } })
      try await run("sh", ["-c", roll], in: folder)
      let log = try String(contentsOfFile: folder + "/systemctl.log", encoding: .utf8).split(separator: "\n").dropFirst(2)
      #expect(log == ["stop trunkline@a", "start trunkline@a", "stop trunkline@b", "start trunkline@b"])
    }
  }
}

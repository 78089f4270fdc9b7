import Testing
import TrunklinePlatform

@Suite struct ProcessMemoryTests {
  @Test func `a process can be closed to cores and debuggers, and opened again`() {
    let before = ProcessMemory.isDumpable
    ProcessMemory.isDumpable = false
    #expect(!ProcessMemory.isDumpable && ProcessMemory.residentBytes() > 0, "it still reads its own /proc")
    ProcessMemory.isDumpable = true
    #expect(ProcessMemory.isDumpable)
    ProcessMemory.isDumpable = before
  }
}

# SPDX-License-Identifier: Apache-2.0
"""What threads wait for in a program that uses tocsin, for gdb: in a live process, and in a core dump.

    (gdb) source tocsin_gdb.py
    (gdb) tocsin waits              who waits on what, since when, and from where in the program
    (gdb) tocsin event ADDRESS      the state of the event at this address (an expression), and who waits on it
    (gdb) print my_event            pretty printers for the library's types; these need debug information of the program

`tocsin waits` needs no debug information of the library, and calls no function of the program. It finds the library's
tables by the symbol tocsin_debugger_layout (src/core/wait/debugger_layout.cpp). A stripped executable that contains the
library lacks this symbol. A live process is stopped while gdb reads, perhaps in the middle of a change. Then a wait may
be missing, or be listed although it is about to end.
"""

import collections
import itertools
import re
import time

import gdb

VERSION = 2
# The members of tocsin_debugger_layout, in their order. Each is as wide as a pointer.
LAYOUT = """version
table buckets bucket_size bucket_queues
node_key node_what node_below node_thread node_since first_lock_kind all_waiter
lists list_count list_size list_first diagnosed_label diagnosed_thread diagnosed_since
diagnosed_polled diagnosed_polled_count diagnosed_members polled_size members_chains member_next member_key
held held_in_use held_size held_bit_word held_bit_thread held_bit_number
names name_chain_count""".split()
KINDS = ("event", "address", "semaphore", "condition")
USES = ("event", "latch", "barrier")  # event_use: what an event is part of
SUBSCRIBER = 5  # wait_node::kind::subscriber: a member of a wait_set, or a pollable
EVENT_AS_LOCK = 64  # detail::event_as_lock, in place of a lock's bit: an event that is set while nobody owns a mutex
EVENT_BITS = ((1, "set"), (2, "waited on"), (4, "being taken by a wait for all"))
POLL = "descriptor"  # core::diagnosed_sleep::polls: a wait that is for each descriptor that its thread polls
MANY = 1_000_000  # so many steps along one list mean that the list is being changed, or was destroyed


class Memory:
    """The memory of the program that gdb looks at."""

    def __init__(self):
        self.inferior = gdb.selected_inferior()
        self.word = gdb.lookup_type("long").pointer().sizeof
        self.order = "big" if "big endian" in gdb.execute("show endian", to_string=True) else "little"

    def number(self, address, size, signed=False):
        return int.from_bytes(self.inferior.read_memory(address, size).tobytes(), self.order, signed=signed)

    def pointer(self, address):
        return self.number(address, self.word)

    def text(self, address):
        result = b""
        while len(result) < 200:
            byte = self.inferior.read_memory(address + len(result), 1).tobytes()
            if byte == b"\0":
                break
            result += byte
        return result.decode("utf-8", "replace")


def symbol(name):
    try:
        return int(gdb.parse_and_eval(f"(unsigned long)&{name}"))
    except gdb.error:
        return None


class Wait:
    def __init__(self, kind, address, thread, since, bit=None):
        self.kind, self.address, self.thread, self.since, self.bit = kind, address, thread, since, bit
        self.owner = 0
        self.name = ""

    def lock(self):
        return (self.address, EVENT_AS_LOCK if self.bit is None else self.bit)


class Library:
    """The library's tables, as they are while the program is stopped."""

    def __init__(self):
        self.memory = Memory()
        at = symbol("tocsin_debugger_layout")
        if at is None:
            raise gdb.GdbError("tocsin: the program does not have the symbol tocsin_debugger_layout: it does not use "
                               "the library, or it was stripped")
        word = self.memory.word
        values = [self.memory.pointer(at + i * word) for i in range(len(LAYOUT))]
        for name, value in zip(LAYOUT, values):
            setattr(self, name, value)
        if self.version != VERSION:
            raise gdb.GdbError(f"tocsin: this script reads layout {VERSION}, the library has {self.version}: use the "
                               "script that was installed with it")

    def waits(self):
        found = list(self.waits_in_table()) + list(self.waits_in_lists())
        owners = self.owners()
        names = self.names_of_addresses()
        for wait in found:
            if wait.kind in ("lock", "event"):
                wait.owner = owners.get(wait.lock(), 0)
            wait.name = names.get(wait.address, "")
            if not wait.name and wait.kind == "barrier":
                wait.name = names.get(wait.address - 1, "")  # its second gate
        return sorted(found, key=lambda wait: wait.since)

    def waits_in_table(self):
        table = self.memory.pointer(self.table)
        inferior, word = self.memory.inferior, self.memory.word
        whole = inferior.read_memory(table, self.buckets * self.bucket_size).tobytes()
        for i in range(self.buckets):
            begin = i * self.bucket_size + self.bucket_queues
            root = int.from_bytes(whole[begin:begin + word], self.memory.order)
            pending = [root] if root else []
            while pending:
                first = pending.pop()
                for side in range(2):
                    below = self.memory.pointer(first + self.node_below + side * word)
                    if below:
                        pending.append(below)
                yield from self.queue(first)

    def queue(self, node):
        memory = self.memory
        for _ in range(MANY):
            if not node:
                return
            if memory.number(node + self.node_what, 1) != SUBSCRIBER:
                address = memory.pointer(node + self.node_key)
                kind = memory.number(node + self.node_key + memory.word, 1)
                use = memory.number(node + self.node_what + 1, 1) >> 1
                bit = kind - self.first_lock_kind if kind >= self.first_lock_kind else None
                name = "lock" if bit is not None else USES[use] if kind == 0 else KINDS[kind]
                yield Wait(name, address, memory.number(node + self.node_thread, 8),
                           memory.number(node + self.node_since, 8, signed=True), bit)
            node = memory.pointer(node)

    def waits_in_lists(self):
        memory = self.memory
        for i in range(self.list_count):
            each = memory.pointer(self.lists + i * self.list_size + self.list_first)
            for _ in range(MANY):
                if not each:
                    break
                kind = memory.text(memory.pointer(each + self.diagnosed_label))
                address = memory.pointer(each + self.diagnosed_label + memory.word)
                origin = (memory.number(each + self.diagnosed_thread, 8),
                          memory.number(each + self.diagnosed_since, 8, signed=True))
                if kind == POLL and not address:
                    first = memory.pointer(each + self.diagnosed_polled)
                    for entry in range(memory.pointer(each + self.diagnosed_polled_count)):
                        yield Wait(kind, memory.number(first + entry * self.polled_size, 4), *origin)
                else:
                    yield Wait(kind, address, *origin)
                if kind == "wait_set":
                    for name, member in self.members(memory.pointer(each + self.diagnosed_members)):
                        yield Wait(name, member, *origin)
                each = memory.pointer(each)

    def members(self, table):
        """What the members of a wait_set are, and where."""
        memory = self.memory
        if not table:
            return
        begin, end = (memory.pointer(table + self.members_chains + i * memory.word) for i in range(2))
        for chain in range(begin, end, memory.word):
            each = memory.pointer(chain)
            for _ in range(MANY):
                if not each:
                    break
                kind = memory.number(each + self.member_key + memory.word, 1)
                yield KINDS[kind], memory.pointer(each + self.member_key)
                each = memory.pointer(each + self.member_next)

    def owners(self):
        """Which thread has which lock: known in checked builds only."""
        memory = self.memory
        result = {}
        for i in range(memory.number(self.held_in_use, 4)):
            at = self.held + i * self.held_size
            key = (memory.pointer(at + self.held_bit_word), memory.number(at + self.held_bit_number, 4))
            thread = memory.number(at + self.held_bit_thread, 8)
            if thread < 1 << 63:  # else a nickname: the thread has never waited, and does not know its number
                result[key] = thread
        return result

    def names_of_addresses(self):
        memory, word = self.memory, self.memory.word
        result = {}
        for i in range(self.name_chain_count):
            entry = memory.pointer(self.names + i * word)
            while entry:
                result[memory.pointer(entry + word)] = memory.text(memory.pointer(entry + 2 * word))
                entry = memory.pointer(entry)
        return result


def deadlocks(waits):
    """The cycles of threads that wait for locks of each other."""
    count = collections.Counter(wait.thread for wait in waits)
    # An event may be one of several things that end the thread's wait.
    waits_for = {wait.thread: wait.owner for wait in waits
                 if wait.owner and (wait.kind == "lock" or count[wait.thread] == 1)}
    while waits_for:
        thread, path = next(iter(waits_for)), []
        while thread in waits_for:
            path.append(thread)
            thread = waits_for.pop(path[-1])
        if thread in path:
            yield path[path.index(thread):]


# Which frames are inside, that is, not the program's: those of the library, of the C++ library, and of the system. The
# names are the linker's, because others lack the namespace or begin with a function's return type. A file's folder
# alone does not decide, because a program may have folders that are called src/core or tocsin.
THUNK = r"(?:T[hv]n?\d+_(?:n?\d+_)?)?"
OF_LIBRARY = re.compile(rf"_Z{THUNK}Z*N[VKrRO]*6tocsin|tocsin::")
OF_STANDARD_LIBRARY = re.compile(rf"_Z{THUNK}Z*(?:N[VKrRO]*)?(?:S[tabsiod]|9__gnu_cxx)|(?:std|__gnu_cxx)::")
OF_SYSTEM = re.compile(
    r"(?:_ZL?\d+)?__|_Z(?:nw|na|dl|da)|(?:syscall|start_thread|clone3?|p?poll|epoll_p?wait2?)$|pthread_")
OF_C = re.compile(r"tocsin_[a-z]")


def expanded(text):
    """The names in a text in which `Sleep{,Ex}` stands for `Sleep SleepEx`, as in a shell."""
    for name in text.split():
        yield from map("".join, itertools.product(*(part.split(",") for part in re.split(r"[{}]", name))))


OF_WIN32 = frozenset(expanded("""
    {Create,Open}{Event,Mutex,Semaphore,WaitableTimer}{A,W} Create{Event,Mutex,Semaphore,WaitableTimer}Ex{A,W}
    {Set,Reset,Pulse}Event Release{Mutex,Semaphore} SetWaitableTimer{,Ex} CancelWaitableTimer
    {Close,Duplicate}Handle GetHandleInformation Tocsin{HandleOfDescriptor,ShareNames} {Get,Set}LastError
    {,Msg}WaitForMultipleObjects{,Ex} WaitForSingleObject{,Ex} SignalObjectAndWait TocsinWaitForManyObjects Sleep{,Ex}
    RegisterWaitForSingleObject UnregisterWait{,Ex} WaitOnAddress WakeByAddress{Single,All}
    InitializeSRWLock {,Try}AcquireSRWLock{Exclusive,Shared} ReleaseSRWLock{Exclusive,Shared}
    {Initialize,Enter,TryEnter,Leave,Delete}CriticalSection InitializeCriticalSection{AndSpinCount,Ex}
    SetCriticalSectionSpinCount {Initialize,Wake,WakeAll}ConditionVariable SleepConditionVariable{CS,SRW}
    InitOnce{Initialize,ExecuteOnce,BeginInitialize,Complete} {Initialize,Enter,Delete}SynchronizationBarrier
    {Create,Open,Exit,Resume,Suspend,Terminate}Thread _{begin,end}threadex SwitchToThread QueueUserAPC ExitProcess
    GetCurrent{Process,Thread}{,Id} GetCurrentThreadStackLimits GetCurrentProcessorNumber{,Ex} Get{Process,Thread}Id
    GetProcessIdOfThread GetExitCodeThread {Get,Set}Thread{Description,GroupAffinity,IdealProcessorEx,Priority}
    {Get,Set}ThreadPriorityBoost SetThread{AffinityMask,IdealProcessor} GetThread{IOPendingFlag,Times}
    Get{,Native}SystemInfo GetProcessAffinityMask Get{Active,Maximum}ProcessorCount GetActiveProcessorGroupCount
    GetTickCount{,64} QueryPerformance{Counter,Frequency} QueryUnbiasedInterruptTime Get{Local,System}Time
    GetSystemTime{,Precise}AsFileTime {SystemTime,LocalFileTime}ToFileTime FileTimeTo{System,LocalFile}Time
    CompareFileTime {Fls,Tls}{Alloc,Free,GetValue,SetValue} {Heap,Local}{Alloc,Free} GetProcessHeap
    TocsinSecureZeroMemory Interlocked{PushEntry,PopEntry,Flush}SList InterlockedPushListSListEx InitializeSListHead
    QueryDepthSList InterlockedBitTestAnd{Set,Reset}{,64} InterlockedBitTestAndComplement
    InterlockedCompareExchange128 QueueUserWorkItem {Create,Delete}TimerQueue DeleteTimerQueueEx
    {Create,Change,Delete}TimerQueueTimer {Create,Close}Threadpool{,CleanupGroup,Timer,Wait,Work}
    CloseThreadpoolCleanupGroupMembers {Query,Set}ThreadpoolStackInformation SetThreadpoolThread{Maximum,Minimum}
    TrySubmitThreadpoolCallback SubmitThreadpoolWork SetThreadpool{Timer,Wait}{,Ex} IsThreadpoolTimerSet
    WaitForThreadpool{Timer,Wait,Work}Callbacks {Initialize,Destroy}ThreadpoolEnvironment
    SetThreadpoolCallback{Pool,CleanupGroup,RunsLong,Persistent,Priority,Library} CallbackMayRunLong
    {SetEvent,ReleaseSemaphore,ReleaseMutex,LeaveCriticalSection}WhenCallbackReturns
    DisassociateCurrentThreadFromCallback
"""))
# Where the functions of C and of Windows are. A program may have functions of such names in other files.
FILE_OF_C = re.compile(r"(^|/)c/src/[^/]*\.cpp$")
FILE_OF_WIN32 = re.compile(r"(^|/)(win32/src/[^/]*\.cpp|tocsin/win32/\w+\.h)$")
SHARED_LIBRARY = re.compile(r"/(libtocsin(-c|_win32)?\.(so|dylib)|lib(c|pthread|stdc\+\+|c\+\+|gcc_s)[.-]|ld-musl-)")
STANDARD_HEADER = re.compile(r"/include/c\+\+/")
PUBLIC_HEADERS = """
    address asio await barrier bit_lock boot_clock channel coalescer condition deadline diagnose driver epoll event
    execution fd futex_table glib group_commit handler_thread latch limits operation pollable process queue_order
    readiness semaphore sender shared_event shared_lock shared_memory shared_semaphore signal source spin status
    stop_token task ticker tocsin uv wait wait_group wait_set watchdog word_lock
"""
PUBLIC_HEADER = re.compile(rf"(^|/)tocsin/(detail/\w+|{'|'.join(PUBLIC_HEADERS.split())})\.hpp$")


def is_library(name, file):
    """Whether the function with this name for the linker is the library's. `file` is empty if it is not known."""
    in_function = re.match(r"_ZZ+(\d+)", name)  # a lambda in a function of C
    plain = name[in_function.end():][:int(in_function[1])] if in_function else re.split(r"[.@]", name)[0]
    if OF_C.match(plain):
        return not file or bool(FILE_OF_C.search(file))
    if plain in OF_WIN32:
        return not file or bool(FILE_OF_WIN32.search(file))
    return bool(OF_LIBRARY.match(name))


def is_inside(name, file):
    return is_library(name, file) or bool(OF_STANDARD_LIBRARY.match(name) or OF_SYSTEM.match(name))


def is_public_template(name):
    """Whether the linker's name is that of a template of the public headers, or of a member of one."""
    prefix = OF_LIBRARY.match(name)
    rest = name[prefix.end():] if prefix else ""
    if rest.startswith(("4core", "8platform", "1c", "5win32", "12_GLOBAL__N_1")):
        return False
    while part := re.match(r"\d+", rest):
        rest = rest[part.end() + int(part[0]):]
    return bool(re.match(r"([CD]\d|[a-z]{2})?I", rest))


class Call:
    """A frame, as far as it tells whose function it is."""

    def __init__(self, frame, depth):
        place = frame.find_sal()
        self.file = place.symtab.filename if place.symtab else ""
        self.line = place.line
        self.name = frame.name() or ""
        self.address = frame.pc() - (depth > 0)  # the address behind a call may be another function's
        self.is_inline = frame.type() == gdb.INLINE_FRAME
        self.linked = linked_name(frame, self.address)

    def is_inside(self, around):
        """Whether the call is inside. `around` is the call whose function this one was inlined into."""
        if SHARED_LIBRARY.search(gdb.solib_name(self.address) or "") or not self.name:
            return True
        if self.linked:
            return is_inside(self.linked, self.file)
        # A lambda or another function that is inline and that the linker does not know. A template of the public
        # headers may contain a lambda of the program.
        if is_library(around.linked, around.file) and not is_public_template(around.linked):
            return True
        return bool(OF_SYSTEM.match(self.name) or STANDARD_HEADER.search(self.file) or PUBLIC_HEADER.search(self.file))

    def __str__(self):
        return f"{self.name} at {self.file}:{self.line}" if self.file else f"{self.name} (0x{self.address:x})"


def linked_name(frame, address):
    """The name that the linker knows the frame's function by; empty for inline functions that it does not know."""
    if frame.type() == gdb.INLINE_FRAME:
        function = frame.function()
        name = function.linkage_name if function is not None else ""
        return name if name.startswith(("_Z", "tocsin::", "std::")) or OF_C.match(name) else ""
    text = gdb.execute(f"with print demangle off -- info symbol {address}", to_string=True)
    return "" if text.startswith("No symbol") else text.split()[0]


def frames(thread):
    thread.switch()
    frame = gdb.newest_frame()
    for _ in range(100):
        if frame is None:
            return
        yield frame
        frame = frame.older()


def threads_by_number():
    return {thread.ptid[1] or thread.ptid[2]: thread for thread in gdb.selected_inferior().threads()}


def call_of(thread):
    """Where the program called the library: the innermost frame that is neither the library's nor the system's."""
    inlined = []
    for depth, frame in enumerate(frames(thread)):
        call = Call(frame, depth)
        inlined.append(call)
        if not call.is_inline:
            for each in inlined:
                if not each.is_inside(call):
                    return str(each)
            inlined = []
    return "not known"


def now():
    """The clock on which waits note their start, or None in a core dump, which does not have the time of its death."""
    live = gdb.selected_inferior().pid != 0 and gdb.selected_thread() is not None
    is_core = "core" in gdb.execute("info target", to_string=True).split("Local exec file")[0].lower()
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) if live and not is_core else None


def ages(waits):
    """For each wait, how long it has waited, as text."""
    current = now()
    if current is not None:
        return [f"for {(current - wait.since) / 1e9:.3f} s" for wait in waits]
    latest = max((wait.since for wait in waits), default=0)
    return [f"parked {(latest - wait.since) / 1e9:.3f} s before the last wait" for wait in waits]


def describe(waits):
    selected = gdb.selected_thread()
    threads = threads_by_number()
    for wait, age in zip(waits, ages(waits)):
        bit = f" bit {wait.bit}" if wait.bit is not None else ""
        name = f" '{wait.name}'" if wait.name else ""
        thread = threads.get(wait.thread)
        number = f"thread {wait.thread}" + (f" (gdb {thread.num} \"{thread.name}\")" if thread else "")
        owner = f", held by thread {wait.owner}" if wait.owner else ""
        where = wait.address if wait.kind == POLL else f"0x{wait.address:x}"
        print(f"{wait.kind} {where}{bit}{name}: {number}, {age}{owner}")
        if thread:
            print(f"    called from {call_of(thread)}")
    if selected is not None:
        selected.switch()


class TocsinCommand(gdb.Command):
    """Shows what threads wait on in a program that uses tocsin: `tocsin waits`, `tocsin event ADDRESS`."""

    def __init__(self):
        super().__init__("tocsin", gdb.COMMAND_STATUS, prefix=True)


class WaitsCommand(gdb.Command):
    """tocsin waits: shows each parked wait, oldest first, and in checked builds the deadlocks among locks."""

    def __init__(self):
        super().__init__("tocsin waits", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        waits = Library().waits()
        if not waits:
            print("nobody waits")
        describe(waits)
        for cycle in deadlocks(waits):
            steps = ", which".join(f" waits for a lock of thread {cycle[(i + 1) % len(cycle)]}" for i in range(len(cycle)))
            print(f"deadlock: thread {cycle[0]}{steps}")


class EventCommand(gdb.Command):
    """tocsin event ADDRESS: shows the state of the event at the address, and who waits on it."""

    def __init__(self):
        super().__init__("tocsin event", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("tocsin event needs an address, such as &my_event")
        address = int(gdb.parse_and_eval(argument).cast(gdb.lookup_type("unsigned long")))
        library = Library()
        waits = [wait for wait in library.waits() if wait.address == address]
        state = event_state(library.memory.number(address, 1))
        name = library.names_of_addresses().get(address, "")
        print(f"event 0x{address:x}" + (f" '{name}'" if name else "") + f": {state}, {len(waits)} parked")
        describe(waits)


def event_state(byte):
    words = [word for bit, word in EVENT_BITS if byte & bit]
    if not byte & 1:
        words.insert(0, "unset")
    return ", ".join(words)


# Pretty printers. They read the members of the objects, and so need the program's debug information.

def atomic(value):
    """The number in an atomic."""
    for path in (("_M_i",), ("_M_base", "_M_i"), ("__a_", "__a_value")):
        try:
            inner = value
            for member in path:
                inner = inner[member]
            return int(inner)
        except (gdb.error, RuntimeError):
            continue
    for field in value.type.strip_typedefs().fields():
        if field.is_base_class:
            return atomic(value[field])
    raise gdb.error("not an atomic")


def parked(address):
    try:
        count = sum(1 for wait in Library().waits() if wait.address == address)
    except (gdb.GdbError, gdb.error):
        return ""
    return f", {count} parked" if count else ""


class Printer:
    def __init__(self, value):
        self.value = value
        self.address = int(value.address) if value.address is not None else 0

    def to_string(self):
        try:
            return self.text()
        except (gdb.error, RuntimeError) as error:
            return f"<{error}>"


class EventPrinter(Printer):
    def text(self):
        return event_state(atomic(self.value["state_"])) + parked(self.address)


class LatchPrinter(Printer):
    def text(self):
        return f"{atomic(self.value['left_'])} to go" + parked(self.address)


class BarrierPrinter(Printer):
    def text(self):
        phases = self.value["phases_"]
        seen = atomic(phases["missing_"])
        waiting = parked(self.address) or parked(self.address + 1)
        return f"{seen >> 1} of {atomic(phases['expected_'])} missing{waiting}"


class WaitGroupPrinter(Printer):
    def text(self):
        return f"{atomic(self.value['word_']) >> 2} to go" + parked(self.address)


class SemaphorePrinter(Printer):
    def text(self):
        word = atomic(self.value["word_"])
        return f"{word >> 2} permits" + parked(self.address)


class ConditionPrinter(Printer):
    def text(self):
        return ("waited on" if atomic(self.value["word_"]) else "nobody waits") + parked(self.address)


class WordLockPrinter(Printer):
    def text(self):
        held = atomic(self.value["word_"]) & 1
        return ("locked" if held else "free") + owner_of(self.address, 0) + parked(self.address)


class BitLockPrinter(Printer):
    def text(self):
        word, bit = self.value["word_"], int(self.value["bit_"])
        held = atomic(word.dereference()) >> bit & 1
        return f"bit {bit} of 0x{int(word):x}: {'locked' if held else 'free'}{owner_of(int(word), bit)}"


def owner_of(word, bit):
    try:
        owner = Library().owners().get((word, bit))
    except (gdb.GdbError, gdb.error):
        return ""
    return f" by thread {owner}" if owner else ""


class ChannelPrinter(Printer):
    def text(self):
        base = next((self.value[f] for f in self.value.type.strip_typedefs().fields() if f.is_base_class), self.value)
        marks = atomic(base["marks_"])
        items = atomic(base["sending_"]["passed"]) - atomic(base["receiving_"]["passed"])
        words = [f"{items} of {int(base['capacity_'])} items"]
        words += [word for bit, word in ((1, "closed"), (2, "senders wait"), (4, "receivers wait")) if marks & bit]
        return ", ".join(words)


def enumerator(value):
    return re.sub(r".*::", "", str(value))


class AnyResultPrinter(Printer):
    def text(self):
        status = enumerator(self.value["status"])
        return f"{status}, source {int(self.value['index'])}" if status == "signaled" else status


class SetResultPrinter(Printer):
    def text(self):
        return f"{enumerator(self.value['status'])}, {int(self.value['count'])} items"


class ReceivedPrinter(Printer):
    def text(self):
        return f"{enumerator(self.value['status_'])}, {self.value['item_']}"


class ParkedWaitPrinter(Printer):
    def text(self):
        name = self.value["name"].format_string(raw=False)
        return f"{self.value['type'].string()} {self.value['address']} {name}: thread {int(self.value['thread'])}"


class SourcePrinter(Printer):
    def text(self):
        kind = enumerator(self.value["kind_"])
        detail = {"descriptor": "descriptor_", "timer": "when_"}.get(kind, "object_")
        return f"{kind} {self.value[detail]}"


class DeadlinePrinter(Printer):
    def text(self):
        clock = enumerator(self.value["clock_"])
        return clock if clock in ("never", "passed") else f"{clock} clock, {int(self.value['nanoseconds_'])} ns"


class TickerPrinter(Printer):
    def text(self):
        ticks = self.value["ticks_"]
        return (f"every {int(ticks['period'])} ns, {int(ticks['ticks'])} in the last report, next: "
                + DeadlinePrinter(ticks["next"]).text())


class ProcessEndPrinter(Printer):
    def text(self):
        return f"process {int(self.value['id_'])}, descriptor {int(self.value['descriptor_'])}"


class CoalescerPrinter(Printer):
    def text(self):
        return f"at most one wake-up in {int(self.value['interval_']['__r'])} ns"


def in_pointer(value):
    """The pointer in a value that is nothing but a pointer, such as a std::unique_ptr."""
    return Memory().pointer(int(value.address))


class OpaquePrinter(Printer):
    """For a type whose state is in the library, where `print *` shows it if the library has debug information."""

    def text(self):
        names = [field.name for field in self.value.type.strip_typedefs().fields()]
        state = self.value["engine_"]["state_"] if "engine_" in names else self.value["state_"]
        return f"state at 0x{in_pointer(state):x}"


class PendingPrinter(Printer):
    """For an operation, and for a coroutine's wait for several sources."""

    def text(self):
        base = self.value.cast(gdb.lookup_type("tocsin::detail::pending_base"))
        count = count_of_span(base["sources_"])
        sources = f"{count} source" + ("s" if count != 1 else "")
        return f"waits for {sources}" if self.waits(base) else f"idle, {sources}"

    def waits(self, base):
        return bool(base["waiting_"])


class OperationPrinter(PendingPrinter):
    def waits(self, base):
        return bool(self.value["busy_"])


def count_of_span(span):
    names = [field.name for field in span.type.strip_typedefs().fields()]
    return int(span["_M_extent"]["_M_extent_value"] if "_M_extent" in names else span["__size_"])


class EndedOperationPrinter(Printer):
    def text(self):
        return f"of the operation at 0x{int(self.value['of_']):x}"


class TaskPrinter(Printer):
    """A coroutine's frame begins with the function that resumes it, or zero if it has ended, and the one that destroys
    it. The promise follows."""

    def text(self):
        frame = in_pointer(self.value["frame_"])
        if not frame:
            return "empty"
        memory, promise = Memory(), self.value["frame_"].type.strip_typedefs().template_argument(0)
        place = gdb.Value(frame + max(2 * memory.word, promise.alignof))
        inside = place.cast(promise.pointer()).dereference()
        if not memory.pointer(frame):
            return "ended with an exception" if in_pointer(inside["thrown_"]) else "ended"
        return "started" if inside["begun_"] else "not started"


class EventAwaiterPrinter(Printer):
    def text(self):
        return "parked" if in_pointer(self.value["who_"]) else "not parked"


class EventWaitPrinter(Printer):
    def text(self):
        return f"for the event at 0x{int(self.value['event_'].address):x}"


class TransferPrinter(Printer):
    def text(self):
        return enumerator(self.value["status_"]) + (", waits" if self.value["enlisted_"] else "")


class WaitTimerPrinter(Printer):
    def text(self):
        try:
            inside = gdb.lookup_type("tocsin::core::timer_member")
        except gdb.error:  # the library has no debug information
            return f"state at 0x{self.address:x}"
        timer = self.value["memory_"].address.cast(inside.pointer()).dereference()
        return f"{DeadlinePrinter(timer['when_']).text()}, in " + ("a set" if timer["list_"] else "no set")


class WaitEntryPrinter(Printer):
    def text(self):
        return f"source {int(self.value['index_'])} of a wait, " + ("listed" if self.value["listed_"] else "not listed")


class EntryListPrinter(Printer):
    def text(self):
        entry, count = self.value["entries_"]["first_"], 0
        while entry and count < MANY:
            entry, count = entry.dereference()["next_"], count + 1
        return f"{count} waits" if count else "nobody waits"


class WakeListPrinter(Printer):
    def text(self):
        holds = self.value["entries_"]["first_"] or self.value["nodes_"]["first_"]
        return "holds waits that wake() releases" if holds else "empty"


class StopReferencePrinter(Printer):
    def text(self):
        return f"token at 0x{int(self.value['token_']):x}" if self.value["token_"] else "none"


class JobPrinter(Printer):
    def text(self):
        return f"calls {self.value['what_']}" if self.value["what_"] else "empty"


class HandlerThreadPrinter(Printer):
    def text(self):
        jobs = count_of_vector(self.value["queue_"]) + count_of_vector(self.value["batch_"])
        text = f"{jobs - int(self.value['position_'])} jobs to run"
        blocked = int(self.value["blocked_"])
        return text + (", closed" if self.value["closed_"] else "") + (f", {blocked} posts wait" if blocked else "")


def count_of_vector(vector):
    names = [field.name for field in vector.type.strip_typedefs().fields()]
    if "__end_" in names:
        return int(vector["__end_"] - vector["__begin_"])
    return int(vector["_M_impl"]["_M_finish"] - vector["_M_impl"]["_M_start"])


class SpinPrinter(Printer):
    def text(self):
        mode = enumerator(self.value["mode_"])
        return mode if mode in ("process", "none") else f"{mode}, up to {int(self.value['longest_'])} ns"


PRINTERS = (
    (r"(manual_reset_event|auto_reset(_priority)?_event|event|detail::basic_event<.*>)", EventPrinter),
    (r"latch", LatchPrinter),
    (r"barrier<.*>", BarrierPrinter),
    (r"wait_group", WaitGroupPrinter),
    (r"counting_semaphore<.*>", SemaphorePrinter),
    (r"condition", ConditionPrinter),
    (r"word_lock<.*>", WordLockPrinter),
    (r"bit_lock<.*>", BitLockPrinter),
    (r"channel<.*>", ChannelPrinter),
    (r"any_result", AnyResultPrinter),
    (r"set_result", SetResultPrinter),
    (r"received<.*>", ReceivedPrinter),
    (r"parked_wait", ParkedWaitPrinter),
    (r"(descriptor_)?source", SourcePrinter),
    (r"ticker", TickerPrinter),
    (r"process_end", ProcessEndPrinter),
    (r"coalescer", CoalescerPrinter),
    (r"(wait_set|pollable|signal_source|wait_watchdog|driver|group_commit<.*>)", OpaquePrinter),
    (r"(operation<.*>|span_operation|operation_base)", OperationPrinter),
    (r"async_wait_op<.*>", PendingPrinter),
    (r"ended_operation", EndedOperationPrinter),
    (r"task<.*>", TaskPrinter),
    (r"event_awaiter<.*>", EventAwaiterPrinter),
    (r"async_event_wait<.*>", EventWaitPrinter),
    (r"(send|receive)_transfer<.*>", TransferPrinter),
    (r"wait_timer", WaitTimerPrinter),
    (r"wait_entry", WaitEntryPrinter),
    (r"entry_list", EntryListPrinter),
    (r"wake_list", WakeListPrinter),
    (r"stop_reference", StopReferencePrinter),
    (r"job", JobPrinter),
    (r"handler_thread", HandlerThreadPrinter),
    (r"deadline", DeadlinePrinter),
    (r"spin_policy", SpinPrinter),
)


def printer_of(value):
    name = value.type.unqualified().strip_typedefs().tag or ""
    if not name.startswith("tocsin::"):
        return None
    for pattern, printer in PRINTERS:
        if re.fullmatch(pattern, name[len("tocsin::"):]):
            return printer(value)
    return None


printer_of.__name__ = "tocsin"

TocsinCommand()
WaitsCommand()
EventCommand()
gdb.pretty_printers.append(printer_of)

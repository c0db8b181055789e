// Measures Boost.Asio: `asio-peer asio <workload> key=value…`.
//
// The workloads are those of the Rust program, with the same delays. A task is a steady_timer on
// a thread_pool; one without delay is posted.

#include <boost/asio.hpp>
#include <cstdlib>
#include <future>
#include <iterator>
#include <memory>

#include "harness.hpp"

namespace {

namespace asio = boost::asio;

// ---- The executor.

using Timer = asio::steady_timer;
using Handle = std::shared_ptr<Timer>;

class Pool {
public:
    explicit Pool(uint64_t workers) : pool(workers) {}

    template <class Task> Handle schedule_at(Instant due, Task task) {
        auto timer = std::make_shared<Timer>(pool.get_executor());
        timer->expires_at(due);
        timer->async_wait([timer, task](const boost::system::error_code& error) mutable {
            if (!error) task();
        });
        return timer;
    }

    template <class Task> Handle schedule(nanoseconds delay, Task task) {
        return schedule_at(Clock::now() + delay, std::move(task));
    }

    template <class Task> void schedule_detached(nanoseconds delay, Task task) {
        if (delay.count() <= 0) asio::post(pool, std::move(task));
        else schedule(delay, std::move(task));
    }

    std::future<int> submit() {
        std::promise<int> promise;
        auto future = promise.get_future();
        asio::post(pool, [promise = std::move(promise)]() mutable { promise.set_value(1); });
        return future;
    }

    // Waits until the workers have handled the cancellations.
    void settle() {
        for (int i = 0; i < 2; i++) submit().wait();
    }

    void finish() {
        pool.stop();
        pool.join();
    }

    // The measurement is over: no timer may outlive the pool.
    void finish(std::vector<Handle>& timers) {
        for (auto& timer : timers) timer->cancel();
        timers.clear();
        settle();
        finish();
    }

    asio::thread_pool pool;
};

auto tiny() {
    static std::atomic<uint64_t> sink;
    auto* captured = &sink;
    return [captured] { captured->fetch_add(1, std::memory_order_relaxed); };
}

std::vector<Handle> fill(Pool& pool, uint64_t count, uint64_t seed = 1) {
    Random random(seed);
    std::vector<Handle> timers;
    timers.reserve(count);
    for (uint64_t i = 0; i < count; i++) timers.push_back(pool.schedule(random.far(), tiny()));
    return timers;
}

// What all threads keep, in one list.
std::vector<Handle> joined(std::vector<std::vector<Handle>>& keep) {
    std::vector<Handle> all;
    for (auto& timers : keep) std::move(timers.begin(), timers.end(), std::back_inserter(all));
    return all;
}

// ---- W1: schedule a task and cancel it, while others are pending.

void w1(uint64_t operations, uint64_t pending, uint64_t threads) {
    Pool pool(2);
    std::vector<std::vector<Handle>> keep(threads);
    auto schedule_and_cancel = [&](uint64_t seed, uint64_t count) {
        Random random(seed);
        for (uint64_t i = 0; i < count; i++) pool.schedule(random.far(), tiny())->cancel();
    };
    // Each thread schedules its share of the pending tasks itself, and warms up.
    auto prepare = [&](uint64_t number) {
        keep[number] = fill(pool, share(pending, threads, number), 1 + 1000 * number);
        schedule_and_cancel(7 + 1000 * number, operations / threads / 10);
    };
    double resident_before = 0;
    auto before = Usage::now();
    auto start = Clock::now();
    auto begin = [&] {
        pool.settle();
        resident_before = resident();
        before = Usage::now();
        start = Clock::now();
    };
    double submitted = prepared(threads, prepare, begin, [&](uint64_t number) {
        schedule_and_cancel(100 + number, operations / threads);
    });
    pool.settle();
    double took = nanos_since(start);
    auto after = Usage::now();
    double count = operations / threads * threads;
    Figures out("W1", {{"P", pending}, {"T", threads}, {"N", operations}});
    out.emit("ns_per_op", took / count, "ns");
    out.emit("ns_per_op_submit", submitted / count, "ns");
    out.emit("cpu_ns_per_op", after.since(before, count).cpu_ns, "ns");
    out.emit("retained_per_cancel", (resident() - resident_before) / count, "B");
    out.emit("rss_after", resident(), "B");
    auto all = joined(keep);
    pool.finish(all);
}

void w1(const Args& args) {
    for (auto pending : args.list("P", "1000,100000,1000000"))
        for (auto threads : args.list("T", "1,2,4"))
            w1(args.number("N", 400000), pending, threads);
}

// ---- W2: schedule when nothing is pending.

void w2(const Args& args) {
    auto tasks = args.number("N", 1000000);
    bool is_again = args.text("mode", "first") == "again";
    for (auto threads : args.list("T", "1,2,4")) {
        Pool pool(2);
        pool.settle();
        auto each = tasks / threads;
        std::vector<std::vector<Handle>> keep(threads);
        double resident_before = 0;
        auto before = Usage::now();
        auto fill = [&](uint64_t number) {
            Random random(100 + number);
            for (auto& timer : keep[number]) timer = pool.schedule(random.far(), tiny());
        };
        auto prepare = [&](uint64_t number) {
            keep[number].resize(each);
            if (!is_again) return;
            fill(number);
            for (auto& timer : keep[number]) timer->cancel(), timer = Handle();
        };
        auto begin = [&] {
            pool.settle();
            resident_before = resident();
            before = Usage::now();
        };
        double took = prepared(threads, prepare, begin, fill);
        auto after = Usage::now();
        double count = each * threads;
        Figures out("W2", {{"T", threads}, {"N", tasks}});
        out.emit("ns_per_op", took / count, "ns");
        out.emit("ns_per_op_submit", took / count, "ns");
        out.emit("cpu_ns_per_op", after.since(before, count).cpu_ns, "ns");
        if (threads == 1 && !is_again) {
            double bytes = (resident() - resident_before) / count;
            out.emit("bytes_per_task", bytes, "B");
        }
        auto all = joined(keep);
        pool.finish(all);
    }
}

// ---- W3: one thread schedules, the workers run. Each mode returns how long it took.

double zero(Pool& pool, uint64_t tasks, const Figures* out) {
    auto& done = Done::of(tasks);
    auto start = Clock::now();
    for (uint64_t i = 0; i < tasks; i++)
        pool.schedule_detached(nanoseconds(0), [&done] { done.hit(); });
    double submitted = nanos_since(start);
    done.wait();
    double took = nanos_since(start);
    if (out) out->emit("submit_ns", submitted / tasks, "ns");
    return took;
}

double at_once(Pool& pool, uint64_t tasks, milliseconds ahead) {
    auto& done = Done::of(tasks);
    auto due = Clock::now() + ahead;
    for (uint64_t i = 0; i < tasks; i++)
        pool.schedule_detached(due - Clock::now(), [&done] { done.hit(); });
    auto start = std::max(Clock::now(), due);
    done.wait();
    return nanos_since(start);
}

double spread(Pool& pool, uint64_t tasks, nanoseconds span, const Figures& out) {
    auto& done = Done::of(tasks);
    std::vector<int64_t> late(tasks);
    Random random(5);
    auto limit = std::min<uint64_t>(span.count(), 0xFFFFFFFFull);
    auto start = Clock::now();
    for (uint64_t i = 0; i < tasks; i++) {
        nanoseconds delay(random.below(limit));
        int64_t* slot = &late[i];
        auto due = Clock::now() + delay;
        pool.schedule_detached(delay, [slot, due, &done] {
            *slot = nanos_since(due);
            done.hit();
        });
    }
    done.wait();
    double took = nanos_since(start);
    out.distribution("late", late);
    return took;
}

void w3(const Args& args) {
    auto tasks = args.number("N", 1000000);
    milliseconds span(args.number("ms", 1000));
    auto mode = args.text("mode", "zero");
    for (auto workers : args.list("W", "1,2")) {
        Pool pool(workers);
        Figures out("W3-" + mode, {{"W", workers}, {"N", tasks}});
        zero(pool, 20000, nullptr);
        auto before = Usage::now();
        double took = mode == "zero"     ? zero(pool, tasks, &out)
                      : mode == "atonce" ? at_once(pool, tasks, span)
                                         : spread(pool, tasks, span, out);
        auto used = Usage::now().since(before, tasks);
        out.emit("tasks_per_s", tasks / (took / 1e9), "1/s");
        out.emit("cpu_ns_per_task", used.cpu_ns, "ns");
        out.emit("vcsw_per_task", used.sleeps, "1");
        pool.finish();
    }
}

// ---- W4: tasks at random instants.

void w4(const Args& args) {
    auto tasks = args.number("N", 1000), ms = args.number("ms", 10000);
    auto workers = args.number("W", 2);
    Pool pool(workers);
    pool.settle();
    std::vector<int64_t> late(tasks);
    auto& done = Done::of(tasks);
    Random random(9);
    auto base = Clock::now() + milliseconds(200);
    auto before = Usage::now();
    for (uint64_t i = 0; i < tasks; i++) {
        auto due = base + microseconds(random.below(ms * 1000));
        int64_t* slot = &late[i];
        pool.schedule_at(due, [slot, due, &done] {
            *slot = nanos_since(due);
            done.hit();
        });
    }
    done.wait();
    auto used = Usage::now().since(before, tasks);
    Figures out("W4", {{"N", tasks}, {"ms", ms}, {"W", workers}});
    out.distribution("late", late);
    out.emit("cpu_us_per_task", used.cpu_ns / 1e3, "us");
    out.emit("vcsw_per_task", used.sleeps, "1");
    pool.finish();
}

// ---- W5: periodic tasks. Each run sets its timer to the next instant of the grid.

struct Periodic {
    Timer timer;
    Instant due;
    nanoseconds period;
    std::atomic<uint64_t>& total;
    std::vector<int64_t> late;

    void arm() {
        timer.expires_at(due);
        timer.async_wait([this](const boost::system::error_code& error) {
            if (error) return;
            late.push_back(nanos_since(due));
            total.fetch_add(1);
            due += period;
            arm();
        });
    }
};

void w5(const Args& args) {
    auto tasks = args.number("N", 100), us = args.number("us", 10000);
    auto ms = args.number("ms", 10000), workers = args.number("W", 2);
    Pool pool(workers);
    pool.settle();
    std::atomic<uint64_t> total{0};
    Random random(3);
    auto base = Clock::now() + milliseconds(50);
    std::vector<std::unique_ptr<Periodic>> all;
    auto before = Usage::now();
    for (uint64_t i = 0; i < tasks; i++) {
        auto first = base + nanoseconds(random.below(us * 1000));
        all.emplace_back(new Periodic{Timer(pool.pool), first, microseconds(us), total, {}});
        all.back()->late.reserve(ms * 1000 / us + 50);
        all.back()->arm();
    }
    std::this_thread::sleep_until(base + milliseconds(ms));
    double runs = total.load();
    auto used = Usage::now().since(before, runs);
    pool.finish();
    std::vector<int64_t> late;
    for (auto& task : all) late.insert(late.end(), task->late.begin(), task->late.end());
    Figures out("W5", {{"N", tasks}, {"us", us}, {"ms", ms}, {"W", workers}});
    out.distribution("late", late);
    out.emit("runs_vs_expected", runs / (tasks * (ms * 1e3 / us)), "1");
    out.emit("cpu_us_per_run", used.cpu_ns / 1e3, "us");
    out.emit("vcsw_per_run", used.sleeps, "1");
}

// ---- W6: submit a task and wait for its result.

int64_t ping(Pool& pool) {
    auto start = Clock::now();
    pool.submit().get();
    return nanos_since(start);
}

double pipeline(Pool& pool, uint64_t count, uint64_t window) {
    std::vector<std::future<int>> futures(window);
    uint64_t done = 0;
    auto start = Clock::now();
    for (; done < count; done += window) {
        for (auto& future : futures) future = pool.submit();
        for (auto& future : futures) future.get();
    }
    return done / (nanos_since(start) / 1e9);
}

void w6(const Args& args) {
    auto pings = args.number("N", 20000), gaps = args.number("gaps", 1000);
    microseconds gap(args.number("gap_us", 300));
    auto piped = args.number("pipe", 300000), window = args.number("win", 256);
    auto workers = args.number("W", 2);
    Pool pool(workers);
    Figures out("W6", {{"W", workers}});
    for (uint64_t i = 0; i < pings / 10; i++) ping(pool);
    std::vector<int64_t> trips(pings);
    auto before = Usage::now();
    for (auto& trip : trips) trip = ping(pool);
    auto used = Usage::now().since(before, pings);
    out.distribution("ping", trips);
    out.emit("ping_cpu_us", used.cpu_ns / 1e3, "us");
    trips.resize(gaps);
    for (auto& trip : trips) {
        std::this_thread::sleep_for(gap);
        trip = ping(pool);
    }
    out.distribution("gap_ping", trips);
    pipeline(pool, piped / 10, window);
    out.emit("pipelined_per_s", pipeline(pool, piped, window), "1/s");
    pool.finish();
}

// ---- W7: timeouts that nearly never fire.

void churn(Pool& pool, uint64_t seed, uint64_t operations) {
    Random random(seed);
    std::vector<std::vector<Handle>> buckets(128);
    for (uint64_t i = 0; i < operations; i++) {
        auto timeout = pool.schedule(std::chrono::seconds(30), tiny());
        buckets[(i + random.below(101)) & 127].push_back(std::move(timeout));
        for (auto& timer : buckets[i & 127]) timer->cancel();
        buckets[i & 127].clear();
    }
    for (auto& bucket : buckets)
        for (auto& timer : bucket) timer->cancel();
}

void w7(const Args& args) {
    auto operations = args.number("N", 200000), outstanding = args.number("P", 10000);
    for (auto threads : args.list("T", "1,2")) {
        Pool pool(2);
        std::vector<std::vector<Handle>> keep(threads);
        auto prepare = [&](uint64_t number) {
            Random random(1 + 1000 * number);
            for (uint64_t i = share(outstanding, threads, number); i > 0; i--) {
                microseconds delay(25000000 + random.below(5000000));
                keep[number].push_back(pool.schedule(delay, tiny()));
            }
            churn(pool, 2 + 1000 * number, operations / 4 / threads);
        };
        auto before = Usage::now();
        auto start = Clock::now();
        auto begin = [&] {
            pool.settle();
            before = Usage::now();
            start = Clock::now();
        };
        prepared(threads, prepare, begin,
                 [&](uint64_t number) { churn(pool, 50 + number, operations / threads); });
        pool.settle();
        double took = nanos_since(start);
        auto used = Usage::now().since(before, operations);
        Figures out("W7", {{"P", outstanding}, {"T", threads}, {"N", operations}});
        out.emit("ns_per_op", took / operations, "ns");
        out.emit("cpu_ns_per_op", used.cpu_ns, "ns");
        auto all = joined(keep);
        pool.finish(all);
    }
}

// ---- W8: shut down.

void w8(const Args& args) {
    auto pending = args.number("P", 1000000);
    auto pool = std::make_unique<Pool>(2);
    // The timers' handlers keep them alive, so the destruction of the pool frees them.
    fill(*pool, pending).clear();
    std::this_thread::sleep_for(milliseconds(50));
    auto start = Clock::now();
    pool->finish();
    pool.reset();
    Figures("W8", {{"P", pending}}).emit("shutdown_ms", nanos_since(start) / 1e6, "ms");
}

}  // namespace

int main(int count, char** words) {
    const std::map<std::string, void (*)(const Args&)> workloads{
        {"w1", w1}, {"w2", w2}, {"w3", w3}, {"w4", w4},
        {"w5", w5}, {"w6", w6}, {"w7", w7}, {"w8", w8}};
    if (count < 3) throw std::runtime_error("usage: asio-peer asio <workload> [key=value…]");
    workloads.at(words[2])(Args(count - 3, words + 3));
    std::fflush(stdout);
    // Freeing the handlers of pending timers is not worth the time.
    std::_Exit(0);
}

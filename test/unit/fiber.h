// A fiber is a call that can stop in the middle and resume later. Fibers let the simulation pause
// or end a simulated process at any point of the shipped code.
//
// makecontext() is used once per fiber, to enter its stack. All other switches use _setjmp and
// _longjmp, which make no system call. Abandoning a call runs no destructor, so a call's objects
// must be trivially destructible. PostgreSQL requires this too: its errors are longjmps.

#pragma once

#include <ucontext.h>

#include "test.h"

#ifdef __SANITIZE_ADDRESS__
#define RANDFLAKE_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RANDFLAKE_ASAN
#endif
#endif
#ifdef RANDFLAKE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace randflake::simulation {

class Fiber {
public:
    Fiber() : stack_(Take()) {}
    Fiber(Fiber&&) = default;
    ~Fiber() {
        Abandon();
        if (stack_ != nullptr) Spare().push_back(std::move(stack_));
    }

    bool busy() const { return stack_->run != nullptr; }

    // Prepares a call, but does not run it. `*call` must live until the call ends.
    template <typename Call> void Start(Call* call) {
        stack_->call = call;
        stack_->run = [](void* started) { (*static_cast<Call*>(started))(); };
        stack_->begun = false;
    }

    void Resume() {
        Stack* stack = stack_.get();
        if (_setjmp(stack->outside) == 0) {
            stack->SwitchIn();
            if (!stack->entered) Enter(stack);
            _longjmp(std::exchange(stack->begun, true) ? stack->inside : stack->bottom, 1);
        }
        stack->SwitchedOut();
    }

    // Stops the running call until the next Resume. Only the call itself may use Pause.
    void Pause() {
        Stack* stack = stack_.get();
        if (_setjmp(stack->inside) == 0) {
            stack->SwitchOut();
            _longjmp(stack->outside, 1);
        }
        stack->SwitchedIn();
    }

    // Ends the running call. Only the call itself may use End.
    [[noreturn]] void End() {
        stack_->run = nullptr;
        stack_->Unpoison();
        stack_->SwitchOut();
        _longjmp(stack_->outside, 1);
    }

    void Abandon() {
        if (stack_ == nullptr || !busy()) return;
        stack_->run = nullptr;
        stack_->Unpoison();
    }

private:
    struct Stack {
        static constexpr size_t kBytes = size_t{64} * 1024;

        void (*run)(void*) = nullptr;
        void* call = nullptr;
        bool entered = false, begun = false;
        std::jmp_buf outside, inside, bottom;
        ucontext_t context;
        std::unique_ptr<char[]> bytes{new char[kBytes]};

#ifdef RANDFLAKE_ASAN
        void SwitchIn() { __sanitizer_start_switch_fiber(&outside_fake, bytes.get(), kBytes); }
        void SwitchedIn() {
            __sanitizer_finish_switch_fiber(nullptr, &outside_bytes, &outside_length);
        }
        void SwitchOut() {
            __sanitizer_start_switch_fiber(&inside_fake, outside_bytes, outside_length);
        }
        void SwitchedOut() { __sanitizer_finish_switch_fiber(outside_fake, nullptr, nullptr); }
        void Unpoison() { __asan_unpoison_memory_region(bytes.get(), kBytes); }

        void *outside_fake = nullptr, *inside_fake = nullptr;
        const void* outside_bytes = nullptr;
        size_t outside_length = 0;
#else
        void SwitchIn() {}
        void SwitchedIn() {}
        void SwitchOut() {}
        void SwitchedOut() {}
        void Unpoison() {}
#endif
    };

    static std::vector<std::unique_ptr<Stack>>& Spare() {
        static std::vector<std::unique_ptr<Stack>> spare;
        return spare;
    }
    static std::unique_ptr<Stack> Take() {
        if (Spare().empty()) return std::make_unique<Stack>();
        std::unique_ptr<Stack> stack = std::move(Spare().back());
        Spare().pop_back();
        return stack;
    }

    // Passes the stack to the new context, because makecontext passes only int arguments.
    static inline Stack* entering = nullptr;

    static void Enter(Stack* stack) {
        // The context must outlive this function's frame, so the stack's struct holds the context.
        ucontext_t& context = stack->context;
        getcontext(&context);
        context.uc_stack.ss_sp = stack->bytes.get();
        context.uc_stack.ss_size = Stack::kBytes;
        context.uc_link = nullptr;
        makecontext(&context, Run, 0);
        stack->entered = stack->begun = true;
        entering = stack;
        setcontext(&context);
    }

    static void Run() {
        Stack* const stack = entering;
        (void)_setjmp(stack->bottom);
        stack->SwitchedIn();
        stack->run(stack->call);
        stack->run = nullptr;
        stack->SwitchOut();
        _longjmp(stack->outside, 1);
    }

    std::unique_ptr<Stack> stack_;
};

}  // namespace randflake::simulation

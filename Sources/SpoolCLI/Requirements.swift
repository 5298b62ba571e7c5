#if !Tools
#error("the spool command needs the package's trait Tools, which is on by default")
#endif

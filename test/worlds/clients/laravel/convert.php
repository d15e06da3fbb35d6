<?php
use Illuminate\Database\Migrations\Migration;
use Illuminate\Support\Facades\DB;

return new class extends Migration {
    public function up(): void
    {
        DB::statement('CREATE EXTENSION IF NOT EXISTS snowflake_convert');
        DB::statement("SELECT snowflake_convert('customers')");
        DB::statement("SELECT snowflake_convert('orders')");
    }
};
